package awsproxy

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	route53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// global lists what belongs to an account.
func (in inspector) global() []lister {
	return []lister{in.roles, in.instanceProfiles, in.oidcProviders, in.zones, in.buckets}
}

func iamTags(tags []iamtypes.Tag) map[string]string {
	found := map[string]string{}
	for _, t := range tags {
		found[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return found
}

// roles lists all but AWS's own service-linked roles.
func (in inspector) roles(ctx context.Context) ([]control.Resource, error) {
	c := iam.NewFromConfig(in.cfg)
	var found []control.Resource
	pages := iam.NewListRolesPaginator(c, &iam.ListRolesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, role := range page.Roles {
			if strings.HasPrefix(aws.ToString(role.Path), "/aws-service-role/") {
				continue
			}
			tags, err := c.ListRoleTags(ctx, &iam.ListRoleTagsInput{RoleName: role.RoleName})
			if err != nil {
				return nil, err
			}
			found = append(found, in.named("iam/role", aws.ToString(role.Arn), aws.ToString(role.RoleName), iamTags(tags.Tags)))
		}
	}
	return found, nil
}

func (in inspector) instanceProfiles(ctx context.Context) ([]control.Resource, error) {
	c := iam.NewFromConfig(in.cfg)
	var found []control.Resource
	pages := iam.NewListInstanceProfilesPaginator(c, &iam.ListInstanceProfilesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, profile := range page.InstanceProfiles {
			found = append(found, in.named("iam/instance-profile", aws.ToString(profile.Arn), aws.ToString(profile.InstanceProfileName), iamTags(profile.Tags)))
		}
	}
	return found, nil
}

// named adds the cluster that Gardener puts into names instead of tags:
// "<technicalID>-nodes".
func (in inspector) named(kind, id, name string, tags map[string]string) control.Resource {
	r := in.resource(kind, id, name, "", tags)
	if cluster, ok := strings.CutSuffix(name, "-nodes"); ok && r.Cluster == "" && strings.HasPrefix(name, "shoot--") {
		r.Cluster = cluster
	}
	return r
}

func (in inspector) oidcProviders(ctx context.Context) ([]control.Resource, error) {
	c := iam.NewFromConfig(in.cfg)
	out, err := c.ListOpenIDConnectProviders(ctx, &iam.ListOpenIDConnectProvidersInput{})
	if err != nil {
		return nil, err
	}
	var found []control.Resource
	for _, provider := range out.OpenIDConnectProviderList {
		tags, err := c.ListOpenIDConnectProviderTags(ctx, &iam.ListOpenIDConnectProviderTagsInput{OpenIDConnectProviderArn: provider.Arn})
		if err != nil {
			return nil, err
		}
		found = append(found, in.resource("iam/oidc-provider", aws.ToString(provider.Arn), "", "", iamTags(tags.Tags)))
	}
	return found, nil
}

// keys lists the customer's keys; a key that is pending deletion says so in its
// state.
func (in inspector) keys(ctx context.Context) ([]control.Resource, error) {
	c := kms.NewFromConfig(in.cfg)
	var found []control.Resource
	pages := kms.NewListKeysPaginator(c, &kms.ListKeysInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range page.Keys {
			about, err := c.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: k.KeyId})
			if err != nil {
				return nil, err
			}
			tags, err := keyTags(ctx, c, aws.ToString(k.KeyId))
			if err != nil {
				return nil, err
			}
			found = append(found, in.resource("kms/key", aws.ToString(k.KeyId), "", string(about.KeyMetadata.KeyState), tags))
		}
	}
	return found, nil
}

// aliases lists the customer's aliases with the tags of their keys.
func (in inspector) aliases(ctx context.Context) ([]control.Resource, error) {
	c := kms.NewFromConfig(in.cfg)
	out, err := c.ListAliases(ctx, &kms.ListAliasesInput{})
	if err != nil {
		return nil, err
	}
	var found []control.Resource
	for _, alias := range out.Aliases {
		name := aws.ToString(alias.AliasName)
		if strings.HasPrefix(name, "alias/aws/") {
			continue
		}
		tags, err := keyTags(ctx, c, aws.ToString(alias.TargetKeyId))
		if err != nil {
			return nil, err
		}
		found = append(found, in.resource("kms/alias", name, name, "", tags))
	}
	return found, nil
}

func keyTags(ctx context.Context, c *kms.Client, key string) (map[string]string, error) {
	out, err := c.ListResourceTags(ctx, &kms.ListResourceTagsInput{KeyId: aws.String(key)})
	if err != nil {
		return nil, err
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[aws.ToString(t.TagKey)] = aws.ToString(t.TagValue)
	}
	return tags, nil
}

func (in inspector) zones(ctx context.Context) ([]control.Resource, error) {
	c := route53.NewFromConfig(in.cfg)
	var found []control.Resource
	pages := route53.NewListHostedZonesPaginator(c, &route53.ListHostedZonesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, zone := range page.HostedZones {
			id := strings.TrimPrefix(aws.ToString(zone.Id), "/hostedzone/")
			out, err := c.ListTagsForResource(ctx, &route53.ListTagsForResourceInput{
				ResourceId: aws.String(id), ResourceType: route53types.TagResourceTypeHostedzone,
			})
			if err != nil {
				return nil, err
			}
			tags := map[string]string{}
			for _, t := range out.ResourceTagSet.Tags {
				tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
			found = append(found, in.resource("route53/hosted-zone", id, aws.ToString(zone.Name), "", tags))
		}
	}
	return found, nil
}

func (in inspector) buckets(ctx context.Context) ([]control.Resource, error) {
	c := s3.NewFromConfig(in.cfg, func(o *s3.Options) { o.UsePathStyle = true })
	out, err := c.ListBuckets(ctx, &s3.ListBucketsInput{})
	if err != nil {
		return nil, err
	}
	var found []control.Resource
	for _, bucket := range out.Buckets {
		tags := map[string]string{}
		tagging, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: bucket.Name})
		var none smithy.APIError
		switch {
		case err == nil:
			for _, t := range tagging.TagSet {
				tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
			}
		case !errors.As(err, &none) || none.ErrorCode() != "NoSuchTagSet":
			return nil, err
		}
		found = append(found, in.resource("s3/bucket", aws.ToString(bucket.Name), "", "", tags))
	}
	return found, nil
}
