package aws

import (
	"context"
	"fmt"
	"log/slog"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"go.temporal.io/sdk/activity"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// DeleteBucket implements contract.AWS.DeleteBucket. With Retain a bucket that
// holds any version of an object stays, also one that only holds deleted
// objects: versioning is there to undo deletions.
//
// The outcome is Retained, Foreign, or has an empty Resource when the bucket is
// gone.
func (a *Activities) DeleteBucket(ctx context.Context, in contract.DeleteBucketInput) (contract.Outcome, error) {
	b, err := a.bucket(ctx, in.CloudResourceInput)
	if err != nil {
		return contract.Outcome{}, err
	}
	identity, err := b.identity(ctx)
	switch {
	case faults.Is(err, faults.Gone):
		return contract.Outcome{}, nil
	case err != nil:
		return contract.Outcome{}, b.explainDenied(err)
	}
	holds, err := b.holdsObjects(ctx)
	if err = faults.IgnoreGone(err); err != nil { // gone meanwhile, or not yet seen everywhere: remove proves it
		return contract.Outcome{}, err
	}
	out := contract.Outcome{Resource: ledger(b.c, typeBucket, b.arn())}
	// An empty, untagged one is ours by its name, as in EnsureBucket.
	if identity != in.Owner.ID && (identity != "" || holds) {
		out.Resource.State = v1.ResourceForeign
		out.Note = fmt.Sprintf("S3 bucket %s is not ours and was left untouched", in.Name)
		return out, nil
	}
	if holds && in.Retain {
		out.Resource.State = v1.ResourceRetained
		out.Note = fmt.Sprintf("S3 bucket %s holds objects and is retained; it costs until you delete it", in.Name)
		return out, nil
	}
	if err := b.remove(ctx); err != nil {
		return contract.Outcome{}, err
	}
	return contract.Outcome{Note: fmt.Sprintf("deleted S3 bucket %s", in.Name)}, nil
}

// holdsObjects reports whether any version of any object is in the bucket.
func (b *bucket) holdsObjects(ctx context.Context) (bool, error) {
	in := &s3.ListObjectVersionsInput{Bucket: b.name, ExpectedBucketOwner: b.owner}
	for {
		out, err := b.s3.ListObjectVersions(ctx, in)
		if err != nil {
			return false, b.fault(err)
		}
		if len(out.Versions) > 0 || !awssdk.ToBool(out.IsTruncated) {
			return len(out.Versions) > 0, nil
		}
		in.KeyMarker, in.VersionIdMarker = out.NextKeyMarker, out.NextVersionIdMarker
	}
}

// remove empties and deletes. Somebody may still write, so it goes round a few
// times before it says so.
func (b *bucket) remove(ctx context.Context) error {
	var err error
	for range 3 {
		if err = faults.IgnoreGone(b.empty(ctx)); err != nil {
			return err
		}
		_, err = b.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
		err = faults.IgnoreGone(b.fault(err))
		if err == nil {
			return b.a.settle(ctx, b.resource(), "deleted", func() (bool, error) {
				_, err := b.identity(ctx)
				return goneAsDone(err)
			})
		}
		if f := faults.As(err); f == nil || f.Code != "BucketNotEmpty" {
			return err
		}
	}
	return err
}

// empty deletes versions, delete markers and uploads: S3 counts them all. It
// always lists from the start, since what it has deleted is no longer listed,
// and beats after each page, since a bucket can take hours. When the attempt's
// time is up, the next attempt goes on with what is left.
func (b *bucket) empty(ctx context.Context) error {
	deleted := 0
	for {
		out, err := b.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
		if err != nil {
			return b.fault(err)
		}
		page := versionsIn(out)
		if len(page) == 0 {
			break
		}
		if err := b.deletePage(ctx, page); err != nil {
			return err
		}
		deleted += len(page)
		b.beat(ctx, fmt.Sprintf("emptying S3 bucket %s: %d versions deleted", b.in.Name, deleted))
	}
	return b.abortUploads(ctx)
}

func versionsIn(out *s3.ListObjectVersionsOutput) []s3types.ObjectIdentifier {
	var page []s3types.ObjectIdentifier
	for _, v := range out.Versions {
		page = append(page, s3types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	for _, m := range out.DeleteMarkers {
		page = append(page, s3types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
	}
	return page
}

// deletePage deletes up to a thousand versions; refusals are in a 200 answer.
func (b *bucket) deletePage(ctx context.Context, page []s3types.ObjectIdentifier) error {
	out, err := b.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: b.name, ExpectedBucketOwner: b.owner,
		Delete: &s3types.Delete{Objects: page, Quiet: awssdk.Bool(true)},
	})
	if err != nil {
		return b.fault(err)
	}
	for _, e := range out.Errors {
		refusal := itemError{code: awssdk.ToString(e.Code), message: awssdk.ToString(e.Message)}
		if err := faults.IgnoreGone(faults.FromAWS(refusal, b.resource()+" object "+awssdk.ToString(e.Key))); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) abortUploads(ctx context.Context) error {
	for {
		out, err := b.s3.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: b.name, ExpectedBucketOwner: b.owner})
		if err != nil {
			return b.fault(err)
		}
		for _, u := range out.Uploads {
			_, err := b.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
				Bucket: b.name, ExpectedBucketOwner: b.owner, Key: u.Key, UploadId: u.UploadId,
			})
			if err := faults.IgnoreGone(b.fault(err)); err != nil {
				return err
			}
		}
		if len(out.Uploads) == 0 {
			return nil
		}
		b.beat(ctx, fmt.Sprintf("emptying S3 bucket %s: %d incomplete uploads aborted", b.in.Name, len(out.Uploads)))
	}
}

func (b *bucket) beat(ctx context.Context, sentence string) {
	slog.DebugContext(ctx, sentence)
	if activity.IsActivity(ctx) {
		activity.RecordHeartbeat(ctx, sentence)
	}
}

// itemError is a refusal that AWS reports within an answer of status 200.
type itemError struct{ code, message string }

func (e itemError) Error() string        { return e.code + ": " + e.message }
func (e itemError) ErrorCode() string    { return e.code }
func (e itemError) ErrorMessage() string { return e.message }
