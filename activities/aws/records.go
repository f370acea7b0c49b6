package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const (
	// ownerLabel goes before a record's name to name its owner TXT record: the
	// name of a CNAME can have no other record.
	ownerLabel = "_owner."
	// recordTTL in seconds: short, since a re-made load balancer has a new name.
	recordTTL = 60
	// changesPerCall is Route 53's limit of changes in one call, 1000, less
	// what upserts count twice.
	changesPerCall = 400
)

// ownerValue is the text of the owner TXT record, quoted as DNS wants it.
func ownerValue(identity string) string {
	return fmt.Sprintf("%q", "heritage=infra-orchestrator,id="+identity)
}

// listings bounds how often a zone is listed anew in one attempt because
// somebody changed it meanwhile.
const listings = 4

// recordSets reads and changes the records of one zone.
type recordSets struct {
	dns   dnsAPI
	zone  string
	fault func(error) error
}

// all lists the zone by name without the last dot, then by type.
func (r recordSets) all(ctx context.Context) (map[string]map[r53types.RRType]r53types.ResourceRecordSet, error) {
	found := map[string]map[r53types.RRType]r53types.ResourceRecordSet{}
	in := &route53.ListResourceRecordSetsInput{HostedZoneId: &r.zone}
	for {
		out, err := r.dns.ListResourceRecordSets(ctx, in)
		if err != nil {
			return nil, r.fault(err)
		}
		for _, set := range out.ResourceRecordSets {
			name := strings.TrimSuffix(awssdk.ToString(set.Name), ".")
			if found[name] == nil {
				found[name] = map[r53types.RRType]r53types.ResourceRecordSet{}
			}
			found[name][set.Type] = set
		}
		if !out.IsTruncated {
			return found, nil
		}
		in.StartRecordName, in.StartRecordType, in.StartRecordIdentifier = out.NextRecordName, out.NextRecordType, out.NextRecordIdentifier
	}
}

// change applies changes, each call all or nothing.
func (r recordSets) change(ctx context.Context, changes []r53types.Change) (last *r53types.ChangeInfo, err error) {
	for batch := range slices.Chunk(changes, changesPerCall) {
		err := audited.ChangeAll(ctx, recordsIn(batch), func() error {
			out, err := r.dns.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{
				HostedZoneId: &r.zone, ChangeBatch: &r53types.ChangeBatch{Changes: batch},
			})
			if err == nil {
				last = out.ChangeInfo
			}
			return r.fault(withMessages(err))
		})
		if err != nil {
			return nil, err
		}
	}
	return last, nil
}

// batchError is a refused batch with what Route 53 says of it in a list.
type batchError struct {
	*r53types.InvalidChangeBatch
}

func (e batchError) ErrorMessage() string { return strings.Join(e.Messages, ", ") }

// withMessages makes the reasons for which a batch was refused its message: the
// SDK keeps them apart.
func withMessages(err error) error {
	var refused *r53types.InvalidChangeBatch
	if errors.As(err, &refused) && len(refused.Messages) > 0 {
		return batchError{refused}
	}
	return err
}

// current runs f, which lists the zone and changes it, again when the zone was
// changed in between: Route 53 then refuses the batch as a whole, be it for a
// record of somebody else.
func (r recordSets) current(f func() error) error {
	var err error
	for range listings {
		err = f()
		if refused := faults.As(err); refused == nil || refused.Code != "InvalidChangeBatch" || refused.Class != faults.Transient {
			return err
		}
	}
	return err
}

// recordsIn names the records of a call, for the audit.
func recordsIn(batch []r53types.Change) []v1.Resource {
	all := make([]v1.Resource, 0, len(batch))
	for _, c := range batch {
		r := recordSet(strings.TrimSuffix(awssdk.ToString(c.ResourceRecordSet.Name), "."))
		if c.Action == r53types.ChangeActionDelete {
			r.State = v1.ResourceDeleting
		}
		all = append(all, r)
	}
	return all
}

// recordSet is a record by its name; Route 53 gives it no id, and no region.
func recordSet(name string) v1.Resource {
	return v1.Resource{Provider: "aws", Type: typeRecordSet, ID: name, State: v1.ResourcePresent}
}

// empty deletes every record set but the zone's own NS and SOA.
func (r recordSets) empty(ctx context.Context, apex string) error {
	return r.current(func() error { return r.emptyOnce(ctx, apex) })
}

func (r recordSets) emptyOnce(ctx context.Context, apex string) error {
	var changes []r53types.Change
	in := &route53.ListResourceRecordSetsInput{HostedZoneId: &r.zone}
	for {
		out, err := r.dns.ListResourceRecordSets(ctx, in)
		if err != nil {
			return r.fault(err)
		}
		for _, set := range out.ResourceRecordSets {
			own := set.Type == r53types.RRTypeNs || set.Type == r53types.RRTypeSoa
			if !own || !strings.EqualFold(awssdk.ToString(set.Name), apex) {
				changes = append(changes, r53types.Change{Action: r53types.ChangeActionDelete, ResourceRecordSet: &set})
			}
		}
		if !out.IsTruncated {
			break
		}
		in.StartRecordName, in.StartRecordType, in.StartRecordIdentifier = out.NextRecordName, out.NextRecordType, out.NextRecordIdentifier
	}
	_, err := r.change(ctx, changes)
	return err
}

func (a *Activities) recordSets(ctx context.Context, in contract.RecordsInput) (recordSets, *clients, error) {
	if err := needIdentity(in.Owner); err != nil {
		return recordSets{}, nil, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return recordSets{}, nil, err
	}
	fault := func(err error) error { return faults.FromAWS(err, "Route 53 zone "+in.ZoneID) }
	return recordSets{dns: c.route53, zone: in.ZoneID, fault: fault}, c, nil
}

// EnsureRecords implements contract.AWS.EnsureRecords. A record and its owner TXT
// record are upserted together, and only when they differ; a record whose owner
// TXT is missing or another's is a Conflict. The outcome names the first one.
func (a *Activities) EnsureRecords(ctx context.Context, in contract.RecordsInput) (out contract.Outcome, err error) {
	sets, c, err := a.recordSets(ctx, in)
	if err != nil {
		return contract.Outcome{}, err
	}
	if len(in.Records) > 0 {
		out.Resource = recordSet(in.Records[0].Name)
		out.Resource.Region = c.region
	}
	var change *r53types.ChangeInfo
	err = sets.current(func() (err error) {
		change, err = sets.ensure(ctx, in)
		return err
	})
	if err != nil || change == nil {
		return out, err
	}
	z := zone{a: a, dns: sets.dns, in: contract.ZoneInput{CloudResourceInput: contract.CloudResourceInput{Name: in.ZoneID}}}
	return out, z.insync(ctx, change)
}

// ensure returns nil when there was nothing to change.
func (r recordSets) ensure(ctx context.Context, in contract.RecordsInput) (*r53types.ChangeInfo, error) {
	have, err := r.all(ctx)
	if err != nil {
		return nil, err
	}
	var changes []r53types.Change
	for _, record := range in.Records {
		more, err := upserts(have, record, in.Owner)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	return r.change(ctx, changes)
}

// upserts returns what must change for one record.
func upserts(have map[string]map[r53types.RRType]r53types.ResourceRecordSet, record contract.Record, owner contract.ObjectRef) ([]r53types.Change, error) {
	resource := "DNS record " + record.Name
	if record.Target == "" {
		return nil, faults.New(faults.Invalid, "NoTarget", resource, "the record has no target yet")
	}
	at, ownerAt := have[record.Name], have[ownerLabel+record.Name]
	mark, marked := ownerAt[r53types.RRTypeTxt]
	if marked && !holds(mark, ownerValue(owner.ID)) {
		return nil, foreign(resource, "", owner)
	}
	if len(at) > 0 && !marked {
		return nil, foreign(resource, "", owner)
	}
	if marked && holds(at[r53types.RRTypeCname], record.Target) {
		return nil, nil
	}
	return []r53types.Change{
		upsert(ownerLabel+record.Name, r53types.RRTypeTxt, ownerValue(owner.ID)),
		upsert(record.Name, r53types.RRTypeCname, record.Target),
	}, nil
}

func holds(set r53types.ResourceRecordSet, value string) bool {
	return len(set.ResourceRecords) == 1 &&
		strings.EqualFold(strings.TrimSuffix(awssdk.ToString(set.ResourceRecords[0].Value), "."), strings.TrimSuffix(value, "."))
}

func upsert(name string, kind r53types.RRType, value string) r53types.Change {
	return r53types.Change{Action: r53types.ChangeActionUpsert, ResourceRecordSet: &r53types.ResourceRecordSet{
		Name: awssdk.String(name), Type: kind, TTL: awssdk.Int64(recordTTL),
		ResourceRecords: []r53types.ResourceRecord{{Value: awssdk.String(value)}},
	}}
}

// DeleteRecords implements contract.AWS.DeleteRecords. It finds the records by
// their owner TXT in the whole zone, so that those of an earlier spec go too;
// in.Records is not needed. An absent zone is success.
func (a *Activities) DeleteRecords(ctx context.Context, in contract.RecordsInput) (contract.None, error) {
	sets, _, err := a.recordSets(ctx, in)
	if err != nil {
		return contract.None{}, err
	}
	if in.ZoneID == "" {
		return contract.None{}, nil
	}
	return contract.None{}, faults.IgnoreGone(sets.current(func() error { return sets.remove(ctx, in.Owner.ID) }))
}

// remove deletes the records of an identity.
func (r recordSets) remove(ctx context.Context, identity string) error {
	have, err := r.all(ctx)
	if err != nil {
		return err
	}
	var changes []r53types.Change
	for name, types := range have {
		mark, marked := types[r53types.RRTypeTxt]
		target, isMark := strings.CutPrefix(name, ownerLabel)
		if !isMark || !marked || !holds(mark, ownerValue(identity)) {
			continue
		}
		// Marks of our identity are only ever put beside a CNAME of ours, and go
		// with it in one call.
		if cname, ok := have[target][r53types.RRTypeCname]; ok {
			changes = append(changes, r53types.Change{Action: r53types.ChangeActionDelete, ResourceRecordSet: &cname})
		}
		changes = append(changes, r53types.Change{Action: r53types.ChangeActionDelete, ResourceRecordSet: &mark})
	}
	_, err = r.change(ctx, changes)
	return err
}
