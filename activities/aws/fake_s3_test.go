package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// fakeS3 has buckets with settings, and no objects but in versions.
type fakeS3 struct {
	bucketAPI
	lossy
	buckets map[string]*fakeBucket
	taken   bool // by a stranger: denied to look at, and to create
}

type fakeBucket struct {
	tags       []s3types.Tag
	block      *s3types.PublicAccessBlockConfiguration
	encryption *s3types.ServerSideEncryptionConfiguration
	versioning s3types.BucketVersioningStatus
	rules      []s3types.LifecycleRule
	versions   []s3types.ObjectVersion
}

func (f *fakeS3) CreateBucket(_ context.Context, in *s3.CreateBucketInput, _ ...func(*s3.Options)) (*s3.CreateBucketOutput, error) {
	if f.taken {
		return nil, apiErr("BucketAlreadyExists")
	}
	if f.buckets[*in.Bucket] != nil {
		return nil, apiErr("BucketAlreadyOwnedByYou")
	}
	f.buckets[*in.Bucket] = &fakeBucket{tags: in.CreateBucketConfiguration.Tags}
	return &s3.CreateBucketOutput{}, f.after("CreateBucket")
}

func (f *fakeS3) GetBucketTagging(_ context.Context, in *s3.GetBucketTaggingInput, _ ...func(*s3.Options)) (*s3.GetBucketTaggingOutput, error) {
	b := f.buckets[*in.Bucket]
	switch {
	case b == nil:
		return nil, apiErr("NoSuchBucket")
	case len(b.tags) == 0:
		return nil, apiErr("NoSuchTagSet")
	}
	return &s3.GetBucketTaggingOutput{TagSet: b.tags}, nil
}

func (f *fakeS3) PutBucketTagging(_ context.Context, in *s3.PutBucketTaggingInput, _ ...func(*s3.Options)) (*s3.PutBucketTaggingOutput, error) {
	if err := f.unknown("PutBucketTagging", "NoSuchBucket"); err != nil {
		return nil, err
	}
	f.buckets[*in.Bucket].tags = in.Tagging.TagSet
	return &s3.PutBucketTaggingOutput{}, f.after("PutBucketTagging")
}

func (f *fakeS3) GetPublicAccessBlock(_ context.Context, in *s3.GetPublicAccessBlockInput, _ ...func(*s3.Options)) (*s3.GetPublicAccessBlockOutput, error) {
	if p := f.buckets[*in.Bucket].block; p != nil {
		return &s3.GetPublicAccessBlockOutput{PublicAccessBlockConfiguration: p}, nil
	}
	return nil, apiErr("NoSuchPublicAccessBlockConfiguration")
}

func (f *fakeS3) PutPublicAccessBlock(_ context.Context, in *s3.PutPublicAccessBlockInput, _ ...func(*s3.Options)) (*s3.PutPublicAccessBlockOutput, error) {
	if err := f.unknown("PutPublicAccessBlock", "NoSuchBucket"); err != nil {
		return nil, err
	}
	f.buckets[*in.Bucket].block = in.PublicAccessBlockConfiguration
	return &s3.PutPublicAccessBlockOutput{}, f.after("PutPublicAccessBlock")
}

func (f *fakeS3) GetBucketEncryption(_ context.Context, in *s3.GetBucketEncryptionInput, _ ...func(*s3.Options)) (*s3.GetBucketEncryptionOutput, error) {
	if e := f.buckets[*in.Bucket].encryption; e != nil {
		return &s3.GetBucketEncryptionOutput{ServerSideEncryptionConfiguration: e}, nil
	}
	return nil, apiErr("ServerSideEncryptionConfigurationNotFoundError")
}

func (f *fakeS3) PutBucketEncryption(_ context.Context, in *s3.PutBucketEncryptionInput, _ ...func(*s3.Options)) (*s3.PutBucketEncryptionOutput, error) {
	f.buckets[*in.Bucket].encryption = in.ServerSideEncryptionConfiguration
	return &s3.PutBucketEncryptionOutput{}, f.after("PutBucketEncryption")
}

func (f *fakeS3) GetBucketVersioning(_ context.Context, in *s3.GetBucketVersioningInput, _ ...func(*s3.Options)) (*s3.GetBucketVersioningOutput, error) {
	if err := f.unknown("GetBucketVersioning", "NoSuchBucket"); err != nil {
		return nil, err
	}
	return &s3.GetBucketVersioningOutput{Status: f.buckets[*in.Bucket].versioning}, nil
}

func (f *fakeS3) PutBucketVersioning(_ context.Context, in *s3.PutBucketVersioningInput, _ ...func(*s3.Options)) (*s3.PutBucketVersioningOutput, error) {
	f.buckets[*in.Bucket].versioning = in.VersioningConfiguration.Status
	return &s3.PutBucketVersioningOutput{}, f.after("PutBucketVersioning")
}

func (f *fakeS3) GetBucketLifecycleConfiguration(_ context.Context, in *s3.GetBucketLifecycleConfigurationInput, _ ...func(*s3.Options)) (*s3.GetBucketLifecycleConfigurationOutput, error) {
	if r := f.buckets[*in.Bucket].rules; len(r) > 0 {
		return &s3.GetBucketLifecycleConfigurationOutput{Rules: slices.Clone(r)}, nil
	}
	return nil, apiErr("NoSuchLifecycleConfiguration")
}

func (f *fakeS3) PutBucketLifecycleConfiguration(_ context.Context, in *s3.PutBucketLifecycleConfigurationInput, _ ...func(*s3.Options)) (*s3.PutBucketLifecycleConfigurationOutput, error) {
	f.buckets[*in.Bucket].rules = in.LifecycleConfiguration.Rules
	return &s3.PutBucketLifecycleConfigurationOutput{}, f.after("PutBucketLifecycleConfiguration")
}

func (f *fakeS3) ListObjectVersions(_ context.Context, in *s3.ListObjectVersionsInput, _ ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error) {
	b := f.buckets[*in.Bucket]
	if b == nil {
		return nil, apiErr("NoSuchBucket")
	}
	return &s3.ListObjectVersionsOutput{Versions: b.versions}, nil
}
