package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// answer is one HTTP answer of AWS.
type answer struct {
	status int
	body   string
}

// config returns an SDK configuration whose endpoint gives the answer.
func (a answer) config(t *testing.T) awssdk.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(s.Close)
	return awssdk.Config{
		Region: "us-west-2", BaseEndpoint: &s.URL,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE000000000", "secret", ""),
		Retryer:     func() awssdk.Retryer { return awssdk.NopRetryer{} },
	}
}

func ec2Error(code, message string) string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>0a1b</RequestID></Response>`, code, message)
}

func queryError(ns, code, message string) string {
	return fmt.Sprintf(`<ErrorResponse xmlns="%s"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>0a1b</RequestId></ErrorResponse>`, ns, code, message)
}

const (
	iamNS = "https://iam.amazonaws.com/doc/2010-05-08/"
	elbNS = "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"
	r53NS = "https://route53.amazonaws.com/doc/2013-04-01/"
)

func s3Error(code, message string) string {
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>%s</Code><Message>%s</Message><RequestId>0a1b</RequestId><HostId>x</HostId></Error>`, code, message)
}

// The services' calls that parse an answer.
var (
	viaEC2 = func(c awssdk.Config) error {
		_, err := ec2.NewFromConfig(c).DescribeVpcs(context.Background(), &ec2.DescribeVpcsInput{})
		return err
	}
	viaELB = func(c awssdk.Config) error {
		_, err := elb.NewFromConfig(c).DescribeLoadBalancers(context.Background(), &elb.DescribeLoadBalancersInput{})
		return err
	}
	viaIAM = func(c awssdk.Config) error {
		_, err := iam.NewFromConfig(c).GetRole(context.Background(), &iam.GetRoleInput{RoleName: awssdk.String("r")})
		return err
	}
	viaKMS = func(c awssdk.Config) error {
		_, err := kms.NewFromConfig(c).DescribeKey(context.Background(), &kms.DescribeKeyInput{KeyId: awssdk.String("k")})
		return err
	}
	viaRoute53 = func(c awssdk.Config) error {
		_, err := route53.NewFromConfig(c).GetHostedZone(context.Background(), &route53.GetHostedZoneInput{Id: awssdk.String("Z1")})
		return err
	}
	viaS3 = func(c awssdk.Config) error {
		_, err := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }).GetBucketTagging(context.Background(), &s3.GetBucketTaggingInput{Bucket: awssdk.String("b")})
		return err
	}
	viaS3Head = func(c awssdk.Config) error {
		_, err := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }).HeadBucket(context.Background(), &s3.HeadBucketInput{Bucket: awssdk.String("b")})
		return err
	}
)

// TestFromAWSAnswers classifies what AWS sends, parsed by the real clients.
func TestFromAWSAnswers(t *testing.T) {
	tests := []struct {
		name   string
		via    func(awssdk.Config) error
		answer answer
		class  faults.Class
		code   string
		owner  faults.Owner
		human  string // part of the sentence for people
	}{
		{"ec2 throttles", viaEC2, answer{503, ec2Error("RequestLimitExceeded", "Request limit exceeded.")},
			faults.Throttled, "RequestLimitExceeded", "", "repeated more slowly"},
		{"s3 throttles", viaS3, answer{503, s3Error("SlowDown", "Please reduce your request rate.")},
			faults.Throttled, "SlowDown", "", "repeated more slowly"},
		{"route 53 is busy", viaRoute53, answer{400, queryError(r53NS, "PriorRequestNotComplete", "The request was rejected because Route 53 was still processing a prior request.")},
			faults.Throttled, "PriorRequestNotComplete", "", "repeated"},
		{"kms throttles", viaKMS, answer{400, `{"__type":"ThrottlingException","message":"You have exceeded the rate at which you may call KMS."}`},
			faults.Throttled, "ThrottlingException", "", "repeated more slowly"},
		{"iam throttles", viaIAM, answer{400, queryError(iamNS, "Throttling", "Rate exceeded")}, faults.Throttled, "Throttling", "", "Rate exceeded"},

		{"ec2 is ill", viaEC2, answer{500, ec2Error("InternalError", "An internal error has occurred")}, faults.Transient, "InternalError", "", "repeated"},
		{"emulator answers html", viaEC2, answer{500, "<!doctype html><html><title>500</title>"}, faults.Transient, "InternalServerError", "", "repeated"},
		{"gateway without a body", viaIAM, answer{502, ""}, faults.Transient, "BadGateway", "", "repeated"},
		{"proxy sheds load", viaEC2, answer{503, ""}, faults.Throttled, "ServiceUnavailable", "", "repeated"},
		{"s3 bucket is changing", viaS3, answer{409, s3Error("OperationAborted", "A conflicting conditional operation is currently in progress against this resource. Please try again.")},
			faults.Transient, "OperationAborted", faults.OwnerProvider, "finished the change before"},
		{"iam cannot read the issuer", viaIAM, answer{400, queryError(iamNS, "OpenIdIdpCommunicationError", "The request failed because IAM cannot connect to the OIDC identity provider URL.")},
			faults.Transient, "OpenIdIdpCommunicationError", faults.OwnerOperator, "issuer URL reachable"},

		{"vpc quota", viaEC2, answer{400, ec2Error("VpcLimitExceeded", "The maximum number of VPCs has been reached.")},
			faults.Quota, "VpcLimitExceeded", faults.OwnerOperator, "Service Quotas"},
		{"cpu quota", viaEC2, answer{400, ec2Error("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of 32 allows.")},
			faults.Quota, "VcpuLimitExceeded", faults.OwnerOperator, "Service Quotas"},
		{"key quota", viaKMS, answer{400, `{"__type":"LimitExceededException","message":"You have reached the maximum number of KMS keys."}`},
			faults.Quota, "LimitExceededException", faults.OwnerOperator, "Service Quotas"},
		{"role quota", viaIAM, answer{409, queryError(iamNS, "LimitExceeded", "Cannot exceed quota for RolesPerAccount: 1000")},
			faults.Quota, "LimitExceeded", faults.OwnerOperator, "RolesPerAccount"},
		{"zone quota", viaRoute53, answer{400, queryError(r53NS, "TooManyHostedZones", "Limits Exceeded: MAX_HOSTED_ZONES_BY_OWNER")},
			faults.Quota, "TooManyHostedZones", faults.OwnerOperator, "Service Quotas"},
		{"bucket quota", viaS3, answer{400, s3Error("TooManyBuckets", "You have attempted to create more buckets than allowed")},
			faults.Quota, "TooManyBuckets", faults.OwnerOperator, "Service Quotas"},
		{"endpoint service quota", viaEC2, answer{400, ec2Error("VpcEndpointServiceLimitExceeded", "limit")},
			faults.Quota, "VpcEndpointServiceLimitExceeded", faults.OwnerOperator, "Service Quotas"},

		{"no machines", viaEC2, answer{500, ec2Error("InsufficientInstanceCapacity", "We currently do not have sufficient m5.xlarge capacity in us-west-2a.")},
			faults.Capacity, "InsufficientInstanceCapacity", "", "another machine class or zone"},

		{"ec2 key unknown", viaEC2, answer{401, ec2Error("AuthFailure", "AWS was not able to validate the provided access credentials")},
			faults.Auth, "AuthFailure", faults.OwnerOperator, "access key"},
		{"ec2 not allowed", viaEC2, answer{403, ec2Error("UnauthorizedOperation", "You are not authorized to perform this operation. User: arn:aws:iam::1:user/x")},
			faults.Auth, "UnauthorizedOperation", faults.OwnerOperator, "grant"},
		{"iam not allowed", viaIAM, answer{403, queryError(iamNS, "AccessDenied", "User: arn:aws:iam::1:user/x is not authorized to perform: iam:GetRole")},
			faults.Auth, "AccessDenied", faults.OwnerOperator, "iam:GetRole"},
		{"kms not allowed", viaKMS, answer{400, `{"__type":"AccessDeniedException","Message":"User is not authorized to perform: kms:DescribeKey"}`},
			faults.Auth, "AccessDeniedException", faults.OwnerOperator, "kms:DescribeKey"},
		{"s3 key unknown", viaS3, answer{403, s3Error("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")},
			faults.Auth, "InvalidAccessKeyId", faults.OwnerOperator, "access key"},
		{"s3 head without a body", viaS3Head, answer{403, ""}, faults.Auth, "Forbidden", faults.OwnerOperator, "grant"},
		{"token expired", viaIAM, answer{403, queryError(iamNS, "ExpiredToken", "The security token included in the request is expired")},
			faults.Auth, "ExpiredToken", faults.OwnerOperator, "access key"},

		{"vpc in use", viaEC2, answer{400, ec2Error("DependencyViolation", "The vpc 'vpc-1' has dependencies and cannot be deleted.")},
			faults.Dependency, "DependencyViolation", faults.OwnerOperator, "detach"},
		{"role in use", viaIAM, answer{409, queryError(iamNS, "DeleteConflict", "Cannot delete entity, must detach all policies first.")},
			faults.Dependency, "DeleteConflict", faults.OwnerOperator, "detach"},
		{"zone not empty", viaRoute53, answer{400, queryError(r53NS, "HostedZoneNotEmpty", "The specified hosted zone contains non-required resource record sets and so cannot be deleted.")},
			faults.Dependency, "HostedZoneNotEmpty", faults.OwnerOperator, "detach"},
		{"bucket not empty", viaS3, answer{409, s3Error("BucketNotEmpty", "The bucket you tried to delete is not empty")},
			faults.Dependency, "BucketNotEmpty", faults.OwnerOperator, "detach"},
		{"load balancer in use", viaELB, answer{400, queryError(elbNS, "ResourceInUse", "Load balancer is currently associated with another service")},
			faults.Dependency, "ResourceInUse", faults.OwnerOperator, "detach"},
		{"key pending deletion", viaKMS, answer{400, `{"__type":"KMSInvalidStateException","message":"arn:aws:kms:us-west-2:1:key/x is pending deletion."}`},
			faults.Dependency, "KMSInvalidStateException", faults.OwnerOperator, "console"},

		{"role exists", viaIAM, answer{409, queryError(iamNS, "EntityAlreadyExists", "Role with name r already exists.")},
			faults.Conflict, "EntityAlreadyExists", faults.OwnerOperator, "rename"},
		{"bucket taken", viaS3, answer{409, s3Error("BucketAlreadyExists", "The requested bucket name is not available.")},
			faults.Conflict, "BucketAlreadyExists", faults.OwnerOperator, "rename"},
		{"alias exists", viaKMS, answer{400, `{"__type":"AlreadyExistsException","message":"An alias with the name alias/a already exists"}`},
			faults.Conflict, "AlreadyExistsException", faults.OwnerOperator, "rename"},
		{"zone conflicts", viaRoute53, answer{400, queryError(r53NS, "ConflictingDomainExists", "The VPC is already associated with a hosted zone of the same name")},
			faults.Conflict, "ConflictingDomainExists", faults.OwnerOperator, "rename"},

		{"bad parameter", viaEC2, answer{400, ec2Error("InvalidParameterValue", "Value (x) for parameter cidrBlock is invalid.")},
			faults.Invalid, "InvalidParameterValue", faults.OwnerUser, "cidrBlock"},
		{"bad policy", viaIAM, answer{400, queryError(iamNS, "MalformedPolicyDocument", "Syntax errors in policy.")},
			faults.Invalid, "MalformedPolicyDocument", faults.OwnerUser, "report a bug"},
		{"bad name", viaIAM, answer{400, queryError(iamNS, "ValidationError", "1 validation error detected")},
			faults.Invalid, "ValidationError", faults.OwnerUser, "report a bug"},

		{"vpc gone", viaEC2, answer{400, ec2Error("InvalidVpcID.NotFound", "The vpc ID 'vpc-1' does not exist")}, faults.Gone, "InvalidVpcID.NotFound", "", "vpc-1"},
		{"endpoint service gone", viaEC2, answer{400, ec2Error("InvalidVpcEndpointServiceId.NotFound", "does not exist")},
			faults.Gone, "InvalidVpcEndpointServiceId.NotFound", "", "does not exist"},
		{"role gone", viaIAM, answer{404, queryError(iamNS, "NoSuchEntity", "The role with name r cannot be found.")}, faults.Gone, "NoSuchEntity", "", "cannot be found"},
		{"bucket gone", viaS3, answer{404, s3Error("NoSuchBucket", "The specified bucket does not exist")}, faults.Gone, "NoSuchBucket", "", "does not exist"},
		{"bucket gone, by head", viaS3Head, answer{404, ""}, faults.Gone, "NotFound", "", "NotFound"},
		{"zone gone", viaRoute53, answer{404, queryError(r53NS, "NoSuchHostedZone", "No hosted zone found with ID: Z1")}, faults.Gone, "NoSuchHostedZone", "", "Z1"},
		{"key gone", viaKMS, answer{400, `{"__type":"NotFoundException","message":"Alias arn:aws:kms:us-west-2:1:alias/a is not found."}`},
			faults.Gone, "NotFoundException", "", "is not found"},
		{"load balancer gone", viaELB, answer{400, queryError(elbNS, "LoadBalancerNotFound", "One or more load balancers not found")},
			faults.Gone, "LoadBalancerNotFound", "", "not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sdkError := tt.via(tt.answer.config(t))
			require.Error(t, sdkError)
			f := faults.As(faults.FromAWS(sdkError, "thing t"))
			require.NotNil(t, f)
			require.Equal(t, tt.class, f.Class, f)
			require.Equal(t, tt.code, f.Code)
			require.Equal(t, tt.owner, f.Owner)
			require.Equal(t, "thing t", f.Resource)
			require.Contains(t, f.Human(), tt.human)
			require.NotContains(t, f.Human(), "AKIAEXAMPLE000000000")
			require.ErrorIs(t, f, sdkError)
		})
	}
}

// TestFromAWSTransport classifies what is no answer.
func TestFromAWSTransport(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	send := func(err error) error {
		return &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateVpc", Err: err}
	}
	tests := []struct {
		name  string
		err   error
		class faults.Class
		code  string
	}{
		{"reset", send(&net.OpError{Op: "read", Err: syscall.ECONNRESET}), faults.Transient, "ConnectionLost"},
		{"eof", send(io.ErrUnexpectedEOF), faults.Transient, "ConnectionLost"},
		{"refused", send(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}), faults.Transient, "ConnectionRefused"},
		{"deadline", send(context.DeadlineExceeded), faults.Transient, "Timeout"},
		{"name", send(&net.DNSError{Err: "no such host", Name: "ec2.us-west-2.amazonaws.com"}), faults.Transient, "NameNotResolved"},
		{"unknown code", &smithy.GenericAPIError{Code: "BrandNew", Message: "m"}, faults.Transient, "BrandNew"},
		{"ours, inside", send(faults.New(faults.Throttled, "RateLimited", "a", "m")), faults.Throttled, "RateLimited"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := faults.As(faults.FromAWS(tt.err, "thing t"))
			require.NotNil(t, f)
			require.Equal(t, tt.class, f.Class)
			require.Equal(t, tt.code, f.Code)
		})
	}
	require.NoError(t, faults.FromAWS(nil, "x"))
	err := send(canceled.Err())
	require.Equal(t, err, faults.FromAWS(err, "x"), "a cancelled call says nothing of AWS")
	require.True(t, errors.Is(err, context.Canceled))
}

// TestFaultsLinkNoSDK: workflows link this package.
func TestFaultsLinkNoSDK(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for dep := range strings.Lines(string(out)) {
		require.NotContains(t, dep, "github.com/aws/")
	}
}
