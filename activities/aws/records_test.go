package aws

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// fakeRecords is one zone. A batch is all or nothing, as in Route 53, and
// between is what others do between a list and the change that follows.
type fakeRecords struct {
	*fakeDNS
	sets    []r53types.ResourceRecordSet
	between []func()
	lists   int
}

func (f *fakeRecords) at(name string, kind r53types.RRType) int {
	return slices.IndexFunc(f.sets, func(s r53types.ResourceRecordSet) bool { return *s.Name == name && s.Type == kind })
}

func (f *fakeRecords) put(name string, kind r53types.RRType, value string) {
	f.sets = append(f.sets, *upsert(name, kind, value).ResourceRecordSet)
}

func (f *fakeRecords) drop(name string, kind r53types.RRType) {
	if i := f.at(name, kind); i >= 0 {
		f.sets = slices.Delete(f.sets, i, i+1)
	}
}

func (f *fakeRecords) ListResourceRecordSets(context.Context, *route53.ListResourceRecordSetsInput, ...func(*route53.Options)) (*route53.ListResourceRecordSetsOutput, error) {
	f.lists++
	out := &route53.ListResourceRecordSetsOutput{ResourceRecordSets: slices.Clone(f.sets)}
	if len(f.between) > 0 {
		f.between[0]()
		f.between = f.between[1:]
	}
	return out, nil
}

func (f *fakeRecords) ChangeResourceRecordSets(_ context.Context, in *route53.ChangeResourceRecordSetsInput, _ ...func(*route53.Options)) (*route53.ChangeResourceRecordSetsOutput, error) {
	var wrong []string
	for _, c := range in.ChangeBatch.Changes {
		if c.Action == r53types.ChangeActionDelete && f.at(*c.ResourceRecordSet.Name, c.ResourceRecordSet.Type) < 0 {
			wrong = append(wrong, fmt.Sprintf("Tried to delete resource record set [name='%s', type='%s'] but it was not found", *c.ResourceRecordSet.Name, c.ResourceRecordSet.Type))
		}
	}
	if len(wrong) > 0 {
		return nil, &r53types.InvalidChangeBatch{Messages: wrong}
	}
	for _, c := range in.ChangeBatch.Changes {
		f.drop(*c.ResourceRecordSet.Name, c.ResourceRecordSet.Type)
		if c.Action == r53types.ChangeActionUpsert {
			f.sets = append(f.sets, *c.ResourceRecordSet)
		}
	}
	return &route53.ChangeResourceRecordSetsOutput{ChangeInfo: &r53types.ChangeInfo{Id: awssdk.String("C1")}}, f.after("ChangeResourceRecordSets")
}

func (f *fakeRecords) DeleteHostedZone(_ context.Context, in *route53.DeleteHostedZoneInput, _ ...func(*route53.Options)) (*route53.DeleteHostedZoneOutput, error) {
	if slices.ContainsFunc(f.sets, func(s r53types.ResourceRecordSet) bool {
		return s.Type != r53types.RRTypeNs && s.Type != r53types.RRTypeSoa
	}) {
		return nil, apiErr("HostedZoneNotEmpty")
	}
	delete(f.zones, *in.Id)
	return &route53.DeleteHostedZoneOutput{}, f.after("DeleteHostedZone")
}

// TestZoneChangesBeforeItsBatch: a record of somebody else that goes between
// the list and the change makes Route 53 refuse the batch as a whole.
func TestZoneChangesBeforeItsBatch(t *testing.T) {
	const name = "c1.example.net"
	ours := func() *fakeRecords {
		f := &fakeRecords{fakeDNS: newFakeDNS()}
		f.put(ownerLabel+name, r53types.RRTypeTxt, ownerValue(fakeOwner.ID))
		f.put(name, r53types.RRTypeCname, "lb.example.net")
		f.put("_acme.x", r53types.RRTypeTxt, `"of cert-manager"`)
		f.put("old.x", r53types.RRTypeTxt, `"of somebody"`)
		return f
	}
	in := contract.RecordsInput{Account: fakeAccount, Owner: fakeOwner, ZoneID: "Z1"}

	t.Run("the zone is emptied", func(t *testing.T) {
		f := ours()
		f.zones["Z1"] = &r53types.HostedZone{Id: awssdk.String("/hostedzone/Z1"), Name: awssdk.String("x."), CallerReference: &fakeOwner.ID,
			Config: &r53types.HostedZoneConfig{PrivateZone: true}}
		f.between = []func(){func() { f.drop("_acme.x", r53types.RRTypeTxt) }, func() { f.drop("old.x", r53types.RRTypeTxt) }}
		a := fakeActivities(t, func(c *clients) { c.route53 = f })
		_, err := a.DeleteHostedZone(t.Context(), contract.ZoneInput{CloudResourceInput: fakeInput("x")})
		require.NoError(t, err)
		require.Empty(t, f.zones)
		require.Equal(t, 3, f.lists)
	})
	t.Run("ours are deleted", func(t *testing.T) {
		f := ours()
		f.between = []func(){func() { f.drop(name, r53types.RRTypeCname) }}
		a := fakeActivities(t, func(c *clients) { c.route53 = f })
		_, err := a.DeleteRecords(t.Context(), in)
		require.NoError(t, err)
		require.Len(t, f.sets, 2, "those of others stay")
	})
	t.Run("never the same twice", func(t *testing.T) {
		f := ours()
		for i := range 100 { // one more comes, and goes before each change
			other := fmt.Sprintf("n%d.x", i)
			f.put(other, r53types.RRTypeTxt, "v")
			f.between = append(f.between, func() { f.drop(other, r53types.RRTypeTxt) })
		}
		err := recordSets{dns: f, zone: "Z1", fault: func(err error) error { return faults.FromAWS(err, "zone") }}.empty(t.Context(), "x.")
		require.True(t, faults.Is(err, faults.Transient), "nobody's fault, and tried again: %v", err)
		require.Equal(t, listings, f.lists)
	})
}

// TestRefusedBatchAsSent: Route 53 gives the reasons in a list, and the SDK's
// message names none of them.
// https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html
func TestRefusedBatchAsSent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `<?xml version="1.0"?><InvalidChangeBatch xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Messages>`+
			`<Message>Tried to delete resource record set [name='old.x.', type='TXT'] but it was not found</Message></Messages><RequestId>1</RequestId></InvalidChangeBatch>`)
	}))
	t.Cleanup(s.Close)
	dns := route53.New(route53.Options{Region: "us-west-2", BaseEndpoint: &s.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE000000000", "secret", ""), Retryer: awssdk.NopRetryer{}})
	_, err := recordSets{dns: dns, zone: "Z1", fault: func(err error) error { return faults.FromAWS(err, "zone Z1") }}.
		change(t.Context(), []r53types.Change{upsert("a.x", r53types.RRTypeTxt, "v")})
	f := faults.As(err)
	require.NotNil(t, f)
	require.Equal(t, faults.Transient, f.Class, f)
	require.Contains(t, f.Human(), "'old.x.'")
}
