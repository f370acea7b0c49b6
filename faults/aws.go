package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// apiError is the part of an AWS API error that is looked at. It is an
// interface, not smithy.APIError, so that this package, which workflows link,
// links no SDK.
type apiError interface {
	error
	ErrorCode() string
	ErrorMessage() string
}

// httpError is the part of the SDK's response error that is looked at.
type httpError interface {
	error
	HTTPStatusCode() int
}

// FromAWS classifies an error of the AWS SDK: an API error by its code, then
// by its HTTP status, then by what broke on the way. resource names what the
// call was about, such as "S3 bucket ic-1a2b3c4d-456789-data".
//
// nil and faults pass through, and so does context.Canceled: it says something
// of the caller, not of AWS.
func FromAWS(err error, resource string) error {
	if err == nil || As(err) != nil || errors.Is(err, context.Canceled) {
		return err
	}
	var f *Fault
	var api apiError
	var status httpError
	hasStatus := errors.As(err, &status)
	switch {
	case errors.As(err, &api) && api.ErrorCode() != "" && api.ErrorCode() != "UnknownError":
		f = fromAWSCode(api)
		if f == nil && hasStatus {
			f = fromAWSStatus(api.ErrorCode(), status.HTTPStatusCode())
		}
		if f == nil {
			f = &Fault{Class: Transient, Code: api.ErrorCode()}
		}
		f.Message = redact(api.ErrorMessage())
	case hasStatus && status.HTTPStatusCode() >= 400:
		f = fromAWSStatus("", status.HTTPStatusCode())
	default:
		f = fromAWSTransport(err)
	}
	if f.Message == "" {
		f.Message = redact(err.Error())
	}
	f.Resource, f.Cause = resource, err
	return f
}

// awsRule is what a code means. owner and hint are those of the class when
// empty.
type awsRule struct {
	class Class
	owner Owner
	hint  string
}

const (
	hintAWSKeys   = "correct the access key in the Provider's Secret; the operation goes on by itself"
	hintAWSGrant  = "grant the Provider's IAM user the permission named in the message; the operation goes on by itself"
	hintAWSQuota  = "raise the limit in the AWS console under Service Quotas, or delete what is unused, then retry"
	hintAWSTaken  = "delete or rename the AWS resource that has the name, then retry"
	hintAWSInUse  = "delete or detach what still uses it; the operation goes on by itself"
	hintAWSBug    = "this control plane sent a request that AWS refuses; correct the spec if the message names a field of it, else report a bug"
	hintAWSClock  = "set the clock of the workers (NTP); the call is repeated"
	hintAWSPeriod = "wait until AWS has finished the change before; the call is repeated"
)

// fromAWSCode looks a code up, first as it is, then by its form, and by its
// message where AWS has one code for several things. nil when it says nothing.
func fromAWSCode(e apiError) *Fault {
	code := e.ErrorCode()
	rule, ok := awsCodes[strings.TrimSuffix(code, "Exception")]
	if !ok {
		rule, ok = awsCodeForm(code, e.ErrorMessage())
	}
	if !ok {
		return nil
	}
	return &Fault{Class: rule.class, Code: code, Owner: rule.owner, Hint: rule.hint}
}

// awsCodes has every code that is not told by its form, without the suffix
// "Exception" that only some services append.
var awsCodes = map[string]awsRule{
	"Throttling": {class: Throttled}, "RequestThrottled": {class: Throttled}, "TooManyRequests": {class: Throttled},
	"RequestLimitExceeded": {class: Throttled}, "SlowDown": {class: Throttled}, "BandwidthLimitExceeded": {class: Throttled},
	"ProvisionedThroughputExceeded": {class: Throttled}, "EC2Throttled": {class: Throttled},
	"PriorRequestNotComplete":       {class: Throttled},
	"ReportGenerationLimitExceeded": {class: Throttled},

	"InternalError": {class: Transient}, "InternalFailure": {class: Transient}, "ServiceFailure": {class: Transient},
	"ServiceUnavailable": {class: Transient}, "Unavailable": {class: Transient}, "KMSInternal": {class: Transient},
	"DependencyTimeout": {class: Transient}, "RequestTimeout": {class: Transient}, "RequestExpired": {Transient, OwnerOperator, hintAWSClock},
	"RequestTimeTooSkewed": {Transient, OwnerOperator, hintAWSClock}, "KeyUnavailable": {class: Transient},
	"OperationAborted":              {Transient, OwnerProvider, hintAWSPeriod},
	"ConcurrentModification":        {Transient, OwnerProvider, hintAWSPeriod},
	"EntityTemporarilyUnmodifiable": {Transient, OwnerProvider, hintAWSPeriod},
	"IncorrectState":                {Transient, OwnerProvider, hintAWSPeriod},
	"OpenIdIdpCommunicationError": {Transient, OwnerOperator,
		"make the shoot's issuer URL reachable from the internet, IAM reads its certificate; the call is repeated"},

	"TooManyHostedZones": {Quota, OwnerOperator, hintAWSQuota}, "LimitsExceeded": {Quota, OwnerOperator, hintAWSQuota},
	"TooManyBuckets": {Quota, OwnerOperator, hintAWSQuota}, "TooManyLoadBalancers": {Quota, OwnerOperator, hintAWSQuota},
	"AddressLimitExceeded": {Quota, OwnerOperator, hintAWSQuota}, "QuotaExceeded": {Quota, OwnerOperator, hintAWSQuota},
	"ServiceQuotaExceeded": {Quota, OwnerOperator, hintAWSQuota},

	"InsufficientInstanceCapacity": {class: Capacity}, "InsufficientHostCapacity": {class: Capacity},
	"InsufficientReservedInstanceCapacity": {class: Capacity}, "InsufficientCapacity": {class: Capacity},
	"InsufficientAddressCapacity": {class: Capacity}, "InsufficientVolumeCapacity": {class: Capacity},

	"AuthFailure":  {Auth, OwnerOperator, hintAWSKeys},
	"ExpiredToken": {Auth, OwnerOperator, hintAWSKeys}, "UnrecognizedClient": {Auth, OwnerOperator, hintAWSKeys},
	"MissingAuthenticationToken": {Auth, OwnerOperator, hintAWSKeys}, "IncompleteSignature": {Auth, OwnerOperator, hintAWSKeys},
	"TokenRefreshRequired": {Auth, OwnerOperator, hintAWSKeys},
	"AccessDenied":         {Auth, OwnerOperator, hintAWSGrant}, "UnauthorizedOperation": {Auth, OwnerOperator, hintAWSGrant},
	"Unauthorized": {Auth, OwnerOperator, hintAWSGrant}, "NotAuthorized": {Auth, OwnerOperator, hintAWSGrant},
	"AllAccessDisabled": {Auth, OwnerOperator, hintAWSGrant}, "OperationNotPermitted": {Auth, OwnerOperator, hintAWSGrant},
	"OptInRequired":  {Auth, OwnerOperator, "enable the service or region for the AWS account, and its billing; the operation goes on by itself"},
	"AccountProblem": {Auth, OwnerOperator, "settle the AWS account's problem with AWS support; the operation goes on by itself"},

	"DependencyViolation": {Dependency, OwnerOperator, hintAWSInUse}, "DeleteConflict": {Dependency, OwnerOperator, hintAWSInUse},
	"HostedZoneNotEmpty": {Dependency, OwnerOperator, hintAWSInUse}, "BucketNotEmpty": {Dependency, OwnerOperator, hintAWSInUse},
	"ResourceInUse": {Dependency, OwnerOperator, hintAWSInUse}, "ExistingVpcEndpointConnections": {Dependency, OwnerOperator, hintAWSInUse},
	"VPCAssociationInUse": {Dependency, OwnerOperator, hintAWSInUse}, "LastVPCAssociation": {Dependency, OwnerOperator, hintAWSInUse},
	"Disabled":        {Dependency, OwnerOperator, "enable the KMS key; the operation goes on by itself"},
	"KMSInvalidState": {Dependency, OwnerOperator, "see the KMS key's state in the console; the operation goes on by itself once it is enabled"},

	"EntityAlreadyExists": {Conflict, OwnerOperator, hintAWSTaken}, "AlreadyExists": {Conflict, OwnerOperator, hintAWSTaken},
	"BucketAlreadyExists": {Conflict, OwnerOperator, hintAWSTaken}, "BucketAlreadyOwnedByYou": {Conflict, OwnerOperator, hintAWSTaken},
	"HostedZoneAlreadyExists": {Conflict, OwnerOperator, hintAWSTaken}, "ConflictingDomainExists": {Conflict, OwnerOperator, hintAWSTaken},
	"RouteAlreadyExists": {Conflict, OwnerOperator, hintAWSTaken}, "IdempotentParameterMismatch": {Conflict, OwnerOperator, hintAWSTaken},
	"MovedPermanently": {Conflict, OwnerOperator, hintAWSTaken}, "PermanentRedirect": {Conflict, OwnerOperator, hintAWSTaken}, "IllegalLocationConstraint": {Conflict, OwnerOperator, hintAWSTaken},
	"UnmodifiableEntity": {Conflict, OwnerOperator, hintAWSTaken}, "Resource.AlreadyAssociated": {Conflict, OwnerOperator, hintAWSTaken},

	"ValidationError": {Invalid, OwnerUser, hintAWSBug}, "Validation": {Invalid, OwnerUser, hintAWSBug},
	"UnsupportedOperation": {Invalid, OwnerUser, hintAWSBug}, "MalformedXML": {Invalid, OwnerUser, hintAWSBug},
	"MissingParameter": {Invalid, OwnerUser, hintAWSBug}, "UnknownParameter": {Invalid, OwnerUser, hintAWSBug},
	"NoSuchEntity": {class: Gone}, "NotFound": {class: Gone}, "VPCAssociationNotFound": {class: Gone},
}

// awsCodeForm tells a class by the parts that AWS composes its codes of:
// InvalidVpcID.NotFound, VpcLimitExceeded, NoSuchBucket, InvalidParameterValue.
func awsCodeForm(code, message string) (awsRule, bool) {
	code = strings.TrimSuffix(code, "Exception")
	switch _, known := awsInvalid[code]; {
	case known:
		return awsInvalidForm(code, message), true
	case code == "SignatureDoesNotMatch" && saysExpired(strings.ToLower(message)):
		return awsBadTime, true
	case code == "SignatureDoesNotMatch":
		return awsBadKey, true
	case strings.HasPrefix(code, "MalformedPolicy") && strings.Contains(strings.ToLower(message), "principal"):
		return awsRefers, true // IAM knows a principal some seconds after it was made
	case strings.HasSuffix(code, "NotFound"), strings.HasPrefix(code, "NoSuch"):
		return awsRule{class: Gone}, true
	case strings.HasSuffix(code, "Throttled"), strings.HasSuffix(code, "Throttling"):
		return awsRule{class: Throttled}, true
	case strings.HasSuffix(code, "LimitExceeded"), strings.HasSuffix(code, "QuotaExceeded"), strings.HasPrefix(code, "TooMany"):
		return awsRule{Quota, OwnerOperator, hintAWSQuota}, true
	case strings.HasPrefix(code, "Duplicate"), strings.HasSuffix(code, ".Duplicate"):
		return awsRule{Conflict, OwnerOperator, hintAWSTaken}, true
	case strings.HasSuffix(code, "InUse"), strings.HasSuffix(code, ".InUse"):
		return awsRule{Dependency, OwnerOperator, hintAWSInUse}, true
	case strings.HasPrefix(code, "Invalid"):
		return awsInvalidForm(code, message), true
	case strings.HasPrefix(code, "Malformed"):
		return awsWrong, true
	}
	return awsRule{}, false
}

// fromAWSStatus classifies an answer whose body says nothing that is known,
// such as that of a HEAD request or of a proxy on the way.
func fromAWSStatus(code string, status int) *Fault {
	if code == "" {
		code = strings.ReplaceAll(http.StatusText(status), " ", "")
	}
	f := &Fault{Code: code}
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		f.Class = Throttled
	case status == http.StatusRequestTimeout, status >= 500:
		f.Class = Transient
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		f.Class, f.Owner, f.Hint = Auth, OwnerOperator, hintAWSGrant
	case status == http.StatusNotFound:
		f.Class = Gone
	case status == http.StatusConflict:
		f.Class, f.Owner, f.Hint = Transient, OwnerProvider, hintAWSPeriod
	case status >= 400: // as awsInvalidForm does with what nothing is known of
		f.Class, f.Owner, f.Hint = Dependency, OwnerOperator, hintAWSRefers
	default:
		f.Class = Transient
	}
	return f
}

// fromAWSTransport classifies an error that is no answer of AWS. All of them
// may pass, and the call may have taken effect.
func fromAWSTransport(err error) *Fault {
	f := &Fault{Class: Transient}
	var netErr net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		f.Code = "Timeout"
	case errors.As(err, &dns):
		f.Code = "NameNotResolved"
		return f.WithHint(OwnerOperator, "see whether the workers can resolve and reach the AWS endpoint; the call is repeated")
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Code = "ConnectionRefused"
		return f.WithHint(OwnerOperator, "see whether the workers can reach the AWS endpoint; the call is repeated")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.Code = "ConnectionLost"
	default:
		f.Code = "Unreachable"
	}
	return f
}
