package aws

import (
	"context"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// uploadRule is the lifecycle rule that ends incomplete uploads: they cost
// storage and no listing of objects shows them.
const (
	uploadRule = "infra-abort-incomplete-uploads"
	uploadDays = 7
)

// configure corrects each setting that differs; on a bucket that is as it
// should be it only reads.
func (b *bucket) configure(ctx context.Context) error {
	for _, ensure := range []func(context.Context) error{
		b.blockPublicAccess, b.encrypt, b.version, b.expireUploads,
	} {
		if err := ensure(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) blockPublicAccess(ctx context.Context) error {
	out, err := b.s3.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
	if err := b.unset(err); err != nil {
		return err
	}
	if err == nil && out.PublicAccessBlockConfiguration != nil {
		p := out.PublicAccessBlockConfiguration
		if awssdk.ToBool(p.BlockPublicAcls) && awssdk.ToBool(p.BlockPublicPolicy) &&
			awssdk.ToBool(p.IgnorePublicAcls) && awssdk.ToBool(p.RestrictPublicBuckets) {
			return nil
		}
	}
	yes := awssdk.Bool(true)
	_, err = b.s3.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{
		Bucket: b.name, ExpectedBucketOwner: b.owner,
		PublicAccessBlockConfiguration: &s3types.PublicAccessBlockConfiguration{
			BlockPublicAcls: yes, BlockPublicPolicy: yes, IgnorePublicAcls: yes, RestrictPublicBuckets: yes,
		},
	})
	return b.fault(err)
}

// encrypt leaves any encryption that somebody chose, such as with a KMS key.
func (b *bucket) encrypt(ctx context.Context) error {
	out, err := b.s3.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
	if err := b.unset(err); err != nil {
		return err
	}
	if err == nil && out.ServerSideEncryptionConfiguration != nil && len(out.ServerSideEncryptionConfiguration.Rules) > 0 {
		return nil
	}
	_, err = b.s3.PutBucketEncryption(ctx, &s3.PutBucketEncryptionInput{
		Bucket: b.name, ExpectedBucketOwner: b.owner,
		ServerSideEncryptionConfiguration: &s3types.ServerSideEncryptionConfiguration{
			Rules: []s3types.ServerSideEncryptionRule{{
				ApplyServerSideEncryptionByDefault: &s3types.ServerSideEncryptionByDefault{SSEAlgorithm: s3types.ServerSideEncryptionAes256},
			}},
		},
	})
	return b.fault(err)
}

func (b *bucket) version(ctx context.Context) error {
	out, err := b.s3.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
	if err != nil {
		return b.fault(err)
	}
	if out.Status == s3types.BucketVersioningStatusEnabled {
		return nil
	}
	_, err = b.s3.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: b.name, ExpectedBucketOwner: b.owner,
		VersioningConfiguration: &s3types.VersioningConfiguration{Status: s3types.BucketVersioningStatusEnabled},
	})
	return b.fault(err)
}

// expireUploads adds our rule and keeps the rules of others.
func (b *bucket) expireUploads(ctx context.Context) error {
	out, err := b.s3.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
	if err := b.unset(err); err != nil {
		return err
	}
	var rules []s3types.LifecycleRule
	if err == nil {
		rules = out.Rules
	}
	at := slices.IndexFunc(rules, func(r s3types.LifecycleRule) bool { return awssdk.ToString(r.ID) == uploadRule })
	if at >= 0 {
		r := rules[at]
		if r.Status == s3types.ExpirationStatusEnabled && r.AbortIncompleteMultipartUpload != nil &&
			awssdk.ToInt32(r.AbortIncompleteMultipartUpload.DaysAfterInitiation) == uploadDays {
			return nil
		}
		rules = slices.Delete(rules, at, at+1)
	}
	rules = append(rules, s3types.LifecycleRule{
		ID: awssdk.String(uploadRule), Status: s3types.ExpirationStatusEnabled,
		Filter:                         &s3types.LifecycleRuleFilter{Prefix: awssdk.String("")},
		AbortIncompleteMultipartUpload: &s3types.AbortIncompleteMultipartUpload{DaysAfterInitiation: awssdk.Int32(uploadDays)},
	})
	_, err = b.s3.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{
		Bucket: b.name, ExpectedBucketOwner: b.owner,
		LifecycleConfiguration: &s3types.BucketLifecycleConfiguration{Rules: rules},
	})
	return b.fault(err)
}

// unset lets the answer pass that a setting was never made, which each setting
// words in its own way, but not the absence of the bucket.
func (b *bucket) unset(err error) error {
	switch f := faults.As(b.fault(err)); {
	case f == nil:
		return err
	case f.Class == faults.Gone && f.Code != "NoSuchBucket":
		return nil
	case f.Code == "ServerSideEncryptionConfigurationNotFoundError":
		return nil
	default:
		return f
	}
}
