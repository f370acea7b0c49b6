package aws

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"golang.org/x/sync/singleflight"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/keep"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// clients are the service clients of one account, region and access key.
type clients struct {
	identity contract.CloudIdentity
	region   string
	key      string              // the id of the access key
	calls    *singleflight.Group // of STS, shared by all clients

	ec2     ec2API
	elb     loadBalancerAPI
	iam     iamAPI
	kms     keyAPI
	route53 dnsAPI
	s3      bucketAPI
	sts     identityAPI
	// tagging indexes the tags of the region, taggingGlobal those of IAM.
	tagging, taggingGlobal taggingAPI
}

// The services' interfaces hold the calls that are used, so that tests can
// stand in for a service, and a reader sees what permissions are needed.
type (
	ec2API interface {
		endpointAPI
		vpcAPI
		volumeAPI
		clusterAPI
	}
	iamAPI interface {
		roleAPI
		oidcAPI
		iam.ListRolesAPIClient
		ListRoleTags(context.Context, *iam.ListRoleTagsInput, ...func(*iam.Options)) (*iam.ListRoleTagsOutput, error)
	}
	identityAPI interface {
		GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error)
	}
)

// factory makes clients, and keeps them until their access key changes, their
// Provider is gone, or nobody has asked for them for an hour.
type factory struct {
	options Options
	http    *http.Client

	sets  keep.Cache[contract.CloudAccount, versioned]
	calls singleflight.Group // of STS, by access key
}

type versioned struct {
	version string
	clients *clients
}

func newFactory(o Options) *factory {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	return &factory{
		options: o,
		// One call may take long (DeleteObjects), but none takes minutes.
		http: &http.Client{Transport: transport, Timeout: 60 * time.Second},
	}
}

// get returns the account's clients. The first call with an access key asks
// STS whose it is, and refuses the key of another account.
func (f *factory) get(ctx context.Context, account contract.CloudAccount) (*clients, error) {
	resource := "Provider/" + account.Namespace + "/" + account.Provider
	id, secret, version, err := f.options.Credentials.AWS(ctx, account.Namespace, account.Provider)
	if err != nil {
		// Without its Provider or Secret a key is nobody's any more.
		if faults.Is(err, faults.Gone) || faults.Is(err, faults.Auth) {
			f.sets.Forget(func(a contract.CloudAccount) bool {
				return a.Namespace == account.Namespace && a.Provider == account.Provider
			})
		}
		return nil, err
	}
	if id == "" || secret == "" {
		return nil, faults.New(faults.Auth, "CredentialsEmpty", resource,
			"the Provider's Secret lacks accessKeyID or secretAccessKey")
	}
	current := func(v versioned) bool { return v.version == version }
	v, err := f.sets.Get(ctx, account, version, current, func(ctx context.Context) (versioned, error) {
		c, err := f.dial(ctx, account, id, secret)
		return versioned{version, c}, err
	})
	if err != nil {
		return nil, err
	}
	return v.clients, nil
}

// dial makes the clients and asks STS who they are.
func (f *factory) dial(ctx context.Context, account contract.CloudAccount, id, secret string) (c *clients, err error) {
	limited := newThrottle(f.options.Limits, account)
	config := awssdk.Config{
		Region:      account.Region,
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, ""),
		HTTPClient:  &client{http: f.http},
		Retryer:     func() awssdk.Retryer { return limited },
		AppID:       "infra-orchestrator",
	}
	if f.options.Endpoint != "" {
		config.BaseEndpoint = &f.options.Endpoint
	}
	c = &clients{
		region:  account.Region,
		ec2:     ec2.NewFromConfig(config),
		elb:     elb.NewFromConfig(config),
		iam:     iam.NewFromConfig(config),
		kms:     kms.NewFromConfig(config),
		route53: route53.NewFromConfig(config),
		s3:      s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = f.options.Endpoint != "" }),
		sts:     sts.NewFromConfig(config),
	}
	c.key, c.calls = id, &f.calls
	c.tagging = tagging.NewFromConfig(config)
	c.taggingGlobal = tagging.NewFromConfig(config, func(o *tagging.Options) { o.Region = globalRegion(account.Region) })
	c.identity, err = c.whoami(ctx, account)
	return c, err
}

// whoami asks STS whose the access key is, once for all who ask at the same
// time, whatever their region, and refuses that of an account that the Provider
// does not name.
func (c *clients) whoami(ctx context.Context, account contract.CloudAccount) (contract.CloudIdentity, error) {
	resource := "Provider/" + account.Namespace + "/" + account.Provider
	who, err := keep.Once(ctx, c.calls, resource+" "+c.key, func(ctx context.Context) (*sts.GetCallerIdentityOutput, error) {
		who, err := c.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		return who, faults.FromAWS(err, resource)
	})
	if err != nil {
		return contract.CloudIdentity{}, err
	}
	id := contract.CloudIdentity{Principal: awssdk.ToString(who.Arn), AccountID: awssdk.ToString(who.Account)}
	if account.AccountID != "" && id.AccountID != account.AccountID {
		return id, faults.New(faults.Auth, "WrongAccount", resource,
			"the access key belongs to AWS account %s, the Provider names %s", id.AccountID, account.AccountID).
			WithHint(faults.OwnerOperator, "put an access key of the named account into the Provider's Secret; the operation goes on by itself")
	}
	return id, nil
}

// client sends bodies from memory: the SDK closes a body as soon as the
// answer's head arrives, which against servers that answer early breaks the
// connection and makes a create look failed.
type client struct{ http *http.Client }

func (c *client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read request body: %w", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.http.Do(r)
}
