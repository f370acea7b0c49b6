package awsinfra

import (
	"errors"
	"regexp"

	"github.com/aws/smithy-go"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// codes maps provider messages to Gardener's error codes, first match first,
// after the table in the extension's pkg/apis/aws/helper/error_codes.go.
var codes = []struct {
	code    gardencorev1beta1.ErrorCode
	message *regexp.Regexp
}{
	{gardencorev1beta1.ErrorInfraUnauthenticated, regexp.MustCompile(`(?i)AuthFailure|InvalidAccessKeyId|InvalidClientTokenId|InvalidSecretAccessKey|SignatureDoesNotMatch|invalid_grant`)},
	{gardencorev1beta1.ErrorInfraUnauthorized, regexp.MustCompile(`(?i)Unauthorized|AccessDenied|OptInRequired|UnauthorizedOperation`)},
	{gardencorev1beta1.ErrorInfraRateLimitsExceeded, regexp.MustCompile(`(?i)RequestLimitExceeded|Throttling|Too many requests`)},
	{gardencorev1beta1.ErrorInfraQuotaExceeded, regexp.MustCompile(`(?i)LimitExceeded|Quota.*exceeded|exceeded quota`)},
	{gardencorev1beta1.ErrorInfraDependencies, regexp.MustCompile(`(?i)DependencyViolation|DeleteConflict|InsufficientFreeAddressesInSubnet|is already being used|InvalidIPAddress.InUse`)},
	{gardencorev1beta1.ErrorInfraResourcesDepleted, regexp.MustCompile(`(?i)InsufficientInstanceCapacity|out of stock`)},
	{gardencorev1beta1.ErrorConfigurationProblem, regexp.MustCompile(`(?i)InvalidParameterValue|InvalidSubnet|InvalidVpc\.Range|notFound.*azone`)},
}

// classify wraps an error of AWS with Gardener's code for it.
func classify(err error) error {
	var api smithy.APIError
	var classified *gardenlet.InfraError
	if err == nil || errors.As(err, &classified) || !errors.As(err, &api) {
		return err
	}
	text := err.Error()
	for _, c := range codes {
		if c.message.MatchString(text) {
			return &gardenlet.InfraError{Code: string(c.code), Message: text}
		}
	}
	return err
}

// hasCode reports whether err is an AWS error with one of the codes.
func hasCode(err error, codes ...string) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	for _, code := range codes {
		if api.ErrorCode() == code {
			return true
		}
	}
	return false
}
