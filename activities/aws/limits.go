package aws

import (
	"context"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/ratelimit"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// allowance is what AWS grants an account, for calls that read and for those
// that change. With region it does so in each region, else once.
type allowance struct {
	region         bool
	reads, changes ratelimit.Limit
}

// allowances are by the SDK's names of the services. AWS counts most actions
// apart; one bucket for all that read and one for all that change stays below
// each of theirs, and leaves something for Gardener and people in the account.
var allowances = map[string]allowance{
	// EC2 developer guide, "Request throttling": an action that reads has a
	// bucket of 100 filled with 20 a second, one that changes of 50 with 5.
	ec2.ServiceID: {true, ratelimit.Limit{Rate: 20, Burst: 100}, ratelimit.Limit{Rate: 5, Burst: 50}},
	// ELB user guide, "Request throttling": reads 40, filled with 10 a second.
	// We change nothing there.
	elb.ServiceID: {true, ratelimit.Limit{Rate: 10, Burst: 40}, ratelimit.Limit{Rate: 1, Burst: 1}},
	// Route 53 developer guide, "Throttling": 10 a second over all actions, 50
	// at once (5 a second until 2026). Gardener's DNS records come out of the
	// same allowance, so we take half, of which an account without the new
	// limits gives all.
	route53.ServiceID: {false, ratelimit.Limit{Rate: 5, Burst: 10}, ratelimit.Limit{Rate: 2.5, Burst: 5}},
	// KMS developer guide, "Request quotas": CreateKey, CreateAlias and their
	// like 5 a second, reads 100 and more.
	kms.ServiceID: {true, ratelimit.Limit{Rate: 50, Burst: 50}, ratelimit.Limit{Rate: 5, Burst: 5}},
	// IAM user guide: STS 600 a second.
	sts.ServiceID: {true, ratelimit.Limit{Rate: 50, Burst: 100}, ratelimit.Limit{Rate: 50, Burst: 100}},
	// AWS tells no figures for IAM and for the configuration of buckets. These
	// are careful; throttled answers correct them.
	iam.ServiceID: {false, ratelimit.Limit{Rate: 15, Burst: 40}, ratelimit.Limit{Rate: 5, Burst: 20}},
	s3.ServiceID:  {true, ratelimit.Limit{Rate: 20, Burst: 60}, ratelimit.Limit{Rate: 10, Burst: 40}},
}

// other is the allowance of a service that has none above.
var other = allowance{true, ratelimit.Limit{Rate: 5, Burst: 10}, ratelimit.Limit{Rate: 2, Burst: 5}}

// isChange tells by the operation's name, as AWS names them.
func isChange(operation string) bool {
	for _, read := range []string{"Get", "List", "Describe", "Head"} {
		if strings.HasPrefix(operation, read) {
			return false
		}
	}
	return true
}

// bucketOf is the bucket that a call takes a token from, and its limit.
func bucketOf(account, service, region, operation string) (ratelimit.Key, ratelimit.Limit) {
	a, ok := allowances[service]
	if !ok {
		a = other
	}
	if !a.region {
		region = ""
	}
	if isChange(operation) {
		return ratelimit.Key{Account: account, Service: service + " changes", Region: region}, a.changes
	}
	return ratelimit.Key{Account: account, Service: service, Region: region}, a.reads
}

// maxThrottled is how often a call is sent whose answers are "throttled". Such
// a call has had no effect, so sending it again makes nothing twice, and an
// activity of ten calls need not begin anew for one of them.
const maxThrottled = 3

// throttle is the SDK's Retryer. It holds each call until its account's bucket
// has a token, tells the bucket of throttled answers, and lets the SDK repeat
// nothing else (see the package's documentation).
type throttle struct {
	awssdk.NopRetryer
	pool    *ratelimit.Pool
	account string
}

var _ awssdk.RetryerV2 = throttle{}

// newThrottle counts by AWS account; by Provider while that names none.
func newThrottle(pool *ratelimit.Pool, account contract.CloudAccount) throttle {
	t := throttle{pool: pool, account: account.AccountID}
	if t.account == "" {
		t.account = account.Namespace + "/" + account.Provider
	}
	return t
}

// GetAttemptToken implements aws.RetryerV2.
func (t throttle) GetAttemptToken(ctx context.Context) (release func(error) error, err error) {
	key, limit := bucketOf(t.account, awsmiddleware.GetServiceID(ctx), awsmiddleware.GetRegion(ctx), awsmiddleware.GetOperationName(ctx))
	done, err := t.pool.Take(ctx, key, limit)
	if err != nil {
		return nil, err
	}
	return func(err error) error {
		done(t.IsErrorRetryable(err))
		return nil
	}, nil
}

// IsErrorRetryable implements aws.Retryer.
func (throttle) IsErrorRetryable(err error) bool {
	return faults.As(err) == nil && faults.Is(faults.FromAWS(err, ""), faults.Throttled)
}

// MaxAttempts implements aws.Retryer.
func (throttle) MaxAttempts() int { return maxThrottled }

// RetryDelay implements aws.Retryer: the bucket makes the call wait.
func (throttle) RetryDelay(int, error) (time.Duration, error) { return 0, nil }
