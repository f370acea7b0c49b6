package aws

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// bucketAPI is what is called of S3.
type bucketAPI interface {
	CreateBucket(context.Context, *s3.CreateBucketInput, ...func(*s3.Options)) (*s3.CreateBucketOutput, error)
	DeleteBucket(context.Context, *s3.DeleteBucketInput, ...func(*s3.Options)) (*s3.DeleteBucketOutput, error)
	ListBuckets(context.Context, *s3.ListBucketsInput, ...func(*s3.Options)) (*s3.ListBucketsOutput, error)
	GetBucketTagging(context.Context, *s3.GetBucketTaggingInput, ...func(*s3.Options)) (*s3.GetBucketTaggingOutput, error)
	PutBucketTagging(context.Context, *s3.PutBucketTaggingInput, ...func(*s3.Options)) (*s3.PutBucketTaggingOutput, error)
	GetPublicAccessBlock(context.Context, *s3.GetPublicAccessBlockInput, ...func(*s3.Options)) (*s3.GetPublicAccessBlockOutput, error)
	PutPublicAccessBlock(context.Context, *s3.PutPublicAccessBlockInput, ...func(*s3.Options)) (*s3.PutPublicAccessBlockOutput, error)
	GetBucketEncryption(context.Context, *s3.GetBucketEncryptionInput, ...func(*s3.Options)) (*s3.GetBucketEncryptionOutput, error)
	PutBucketEncryption(context.Context, *s3.PutBucketEncryptionInput, ...func(*s3.Options)) (*s3.PutBucketEncryptionOutput, error)
	GetBucketVersioning(context.Context, *s3.GetBucketVersioningInput, ...func(*s3.Options)) (*s3.GetBucketVersioningOutput, error)
	PutBucketVersioning(context.Context, *s3.PutBucketVersioningInput, ...func(*s3.Options)) (*s3.PutBucketVersioningOutput, error)
	GetBucketLifecycleConfiguration(context.Context, *s3.GetBucketLifecycleConfigurationInput, ...func(*s3.Options)) (*s3.GetBucketLifecycleConfigurationOutput, error)
	PutBucketLifecycleConfiguration(context.Context, *s3.PutBucketLifecycleConfigurationInput, ...func(*s3.Options)) (*s3.PutBucketLifecycleConfigurationOutput, error)
	ListObjectVersions(context.Context, *s3.ListObjectVersionsInput, ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error)
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
	ListMultipartUploads(context.Context, *s3.ListMultipartUploadsInput, ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error)
}

// bucket is one bucket of an owner, in one activity call. Every call names the
// expected account, so that a stranger's bucket of the same name answers
// AccessDenied instead of doing anything.
type bucket struct {
	a     *Activities
	c     *clients
	s3    bucketAPI
	in    contract.CloudResourceInput
	name  *string
	owner *string // account
}

func (a *Activities) bucket(ctx context.Context, in contract.CloudResourceInput) (*bucket, error) {
	if err := needIdentity(in.Owner); err != nil {
		return nil, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	return &bucket{a: a, c: c, s3: c.s3, in: in, name: &in.Name, owner: &c.identity.AccountID}, nil
}

func (b *bucket) resource() string { return "S3 bucket " + b.in.Name }

func (b *bucket) arn() string { return "arn:" + b.c.partition() + ":s3:::" + b.in.Name }

func (b *bucket) fault(err error) error { return faults.FromAWS(err, b.resource()) }

// EnsureBucket implements contract.AWS.EnsureBucket.
func (a *Activities) EnsureBucket(ctx context.Context, in contract.CloudResourceInput) (contract.Outcome, error) {
	b, err := a.bucket(ctx, in)
	if err != nil {
		return contract.Outcome{}, err
	}
	note, err := b.exist(ctx)
	if err != nil {
		return contract.Outcome{}, err
	}
	if err := a.steady(ctx, b.resource(), func() error { return b.configure(ctx) }); err != nil {
		return contract.Outcome{}, err
	}
	return contract.Outcome{Resource: ledger(b.c, typeBucket, b.arn()), Note: note}, nil
}

// exist makes the bucket unless it is there. Looking first matters most in
// us-east-1, where creating one's own bucket again succeeds and resets its ACL.
func (b *bucket) exist(ctx context.Context) (note string, err error) {
	identity, err := b.identity(ctx)
	switch {
	case err == nil && identity == b.in.Owner.ID:
		return "", nil
	case err == nil && identity == "":
		return "", b.a.steady(ctx, b.resource(), func() error { return b.adoptUntagged(ctx) })
	case err == nil:
		return "", foreign(b.resource(), identity, b.in.Owner)
	case !faults.Is(err, faults.Gone):
		return "", b.explainDenied(err)
	}
	if err := b.create(ctx); err != nil {
		return "", err
	}
	err = b.a.settle(ctx, b.resource(), "created", func() (bool, error) {
		_, err := b.identity(ctx)
		return err == nil, err
	})
	return fmt.Sprintf("created S3 bucket %s", b.in.Name), err
}

// create makes the bucket with its tags. A bucket of that name that belongs to
// somebody else is a Conflict by its code.
func (b *bucket) create(ctx context.Context) error {
	config := &s3types.CreateBucketConfiguration{Tags: b.tags()}
	if b.c.region != "us-east-1" { // which must not be named
		config.LocationConstraint = s3types.BucketLocationConstraint(b.c.region)
	}
	_, err := b.s3.CreateBucket(ctx, &s3.CreateBucketInput{
		Bucket:                    b.name,
		CreateBucketConfiguration: config,
		ObjectOwnership:           s3types.ObjectOwnershipBucketOwnerEnforced,
	})
	fault := faults.As(b.fault(err))
	if fault != nil && fault.Code == "BucketAlreadyOwnedByYou" {
		return nil // made by an earlier call that is only now visible
	}
	return b.fault(err)
}

// adoptUntagged takes a bucket without tags, in our account and of a name that
// only our identity yields, if nothing is in it: a create whose tags were lost.
func (b *bucket) adoptUntagged(ctx context.Context) error {
	holds, err := b.holdsObjects(ctx)
	if err != nil {
		return err
	}
	if holds {
		return foreign(b.resource(), "", b.in.Owner)
	}
	_, err = b.s3.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{
		Bucket: b.name, ExpectedBucketOwner: b.owner, Tagging: &s3types.Tagging{TagSet: b.tags()},
	})
	return b.fault(err)
}

func (b *bucket) tags() []s3types.Tag {
	return tagsAs(identityTags(b.in.Owner, b.in.Env), func(k, v *string) s3types.Tag { return s3types.Tag{Key: k, Value: v} })
}

// identity returns the bucket's identity tag, "" when it has none, and a Gone
// fault when there is no bucket.
func (b *bucket) identity(ctx context.Context) (string, error) {
	out, err := b.s3.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
	if f := faults.As(b.fault(err)); f != nil {
		if f.Code == "NoSuchTagSet" || f.Code == "NoSuchTagSetError" {
			return "", nil
		}
		return "", f
	}
	if err != nil {
		return "", err
	}
	return identityIn(out.TagSet, func(t s3types.Tag) (*string, *string) { return t.Key, t.Value }), nil
}

// explainDenied says what a denied look at a bucket can mean.
func (b *bucket) explainDenied(err error) error {
	if f := faults.As(err); f != nil && f.Class == faults.Auth {
		f.Hint = "grant the Provider's IAM user s3:GetBucketTagging; or, if another AWS account has a bucket of this name, re-create the object"
	}
	return err
}
