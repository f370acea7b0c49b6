package aws

import (
	"context"
	"maps"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	taggingtypes "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
)

// fakeIndex is the index of tags over the fakes. It is late when told so.
type fakeIndex struct {
	kms   *fakeKMS
	iam   *fakeIAM
	elb   *fakeELB
	late  []string // ids of keys that it does not know yet
	calls int
}

func (f *fakeIndex) GetResources(_ context.Context, in *tagging.GetResourcesInput, _ ...func(*tagging.Options)) (*tagging.GetResourcesOutput, error) {
	f.calls++
	identity := in.TagFilters[0].Values[0]
	var arns []string
	switch in.ResourceTypeFilters[0] {
	case taggedKeys:
		for _, id := range slices.Sorted(maps.Keys(f.kms.keys)) {
			of := identityIn(f.kms.tags[id], func(t kmstypes.Tag) (*string, *string) { return t.TagKey, t.TagValue })
			if of == identity && !slices.Contains(f.late, id) {
				arns = append(arns, *f.kms.keys[id].Arn)
			}
		}
	case taggedOIDCProviders:
		arns = append(arns, f.iam.listedLate...)
		for arn, p := range f.iam.providers {
			if identityIn(p.Tags, iamTag) == identity && !slices.Contains(f.iam.unlisted, arn) {
				arns = append(arns, arn)
			}
		}
	case taggedLoadBalancers:
		for arn, of := range f.elb.tags {
			if of == identity {
				arns = append(arns, arn)
			}
		}
	}
	out := &tagging.GetResourcesOutput{}
	for _, arn := range arns {
		out.ResourceTagMappingList = append(out.ResourceTagMappingList, taggingtypes.ResourceTagMapping{ResourceARN: awssdk.String(arn)})
	}
	return out, nil
}
