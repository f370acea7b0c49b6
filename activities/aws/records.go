package aws

import (
	"context"
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
			return r.fault(err)
		})
		if err != nil {
			return nil, err
		}
	}
	return last, nil
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

// EnsureRecords implements contract.EnsureRecords. A record and its owner TXT
// record are upserted together, and only when they differ; a record whose owner
// TXT is missing or another's is a Conflict. The outcome names the first one.
func (a *Activities) EnsureRecords(ctx context.Context, in contract.RecordsInput) (out contract.Outcome, err error) {
	sets, c, err := a.recordSets(ctx, in)
	if err != nil {
		return contract.Outcome{}, err
	}
	have, err := sets.all(ctx)
	if err != nil {
		return contract.Outcome{}, err
	}
	if len(in.Records) > 0 {
		out.Resource = recordSet(in.Records[0].Name)
		out.Resource.Region = c.region
	}
	var changes []r53types.Change
	for _, record := range in.Records {
		more, err := upserts(have, record, in.Owner)
		if err != nil {
			return contract.Outcome{}, err
		}
		changes = append(changes, more...)
	}
	if len(changes) == 0 {
		return out, nil
	}
	change, err := sets.change(ctx, changes)
	if err != nil {
		return contract.Outcome{}, err
	}
	z := zone{a: a, dns: sets.dns, in: contract.HostedZoneInput{AWSResourceInput: contract.AWSResourceInput{Name: in.ZoneID}}}
	return out, z.insync(ctx, change)
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

// DeleteRecords implements contract.DeleteRecords. It finds the records by
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
	have, err := sets.all(ctx)
	if err != nil {
		return contract.None{}, faults.IgnoreGone(err)
	}
	var changes []r53types.Change
	for name, types := range have {
		mark, marked := types[r53types.RRTypeTxt]
		target, isMark := strings.CutPrefix(name, ownerLabel)
		if !isMark || !marked || !holds(mark, ownerValue(in.Owner.ID)) {
			continue
		}
		// Marks of our identity are only ever put beside a CNAME of ours, and go
		// with it in one call.
		if cname, ok := have[target][r53types.RRTypeCname]; ok {
			changes = append(changes, r53types.Change{Action: r53types.ChangeActionDelete, ResourceRecordSet: &cname})
		}
		changes = append(changes, r53types.Change{Action: r53types.ChangeActionDelete, ResourceRecordSet: &mark})
	}
	_, err = sets.change(ctx, changes)
	return contract.None{}, faults.IgnoreGone(err)
}
