package faults

import "strings"

const (
	hintAWSRefers = "see whether what the message names exists and can be used; AWS may show what is new late; the operation tries again by itself, report a bug if it stays so"
	hintAWSAgain  = "nothing yet, what AWS lists has changed meanwhile; the call is repeated"
)

// Rules that several codes share.
var (
	awsWrong   = awsRule{Invalid, OwnerUser, hintAWSBug}
	awsRefers  = awsRule{Dependency, OwnerOperator, hintAWSRefers}
	awsBusy    = awsRule{Transient, OwnerProvider, hintAWSPeriod}
	awsAgain   = awsRule{Transient, "", hintAWSAgain}
	awsBadKey  = awsRule{Auth, OwnerOperator, hintAWSKeys}
	awsBadTime = awsRule{Transient, OwnerOperator, hintAWSClock}
)

// awsInvalid has the codes that begin with "Invalid", without the suffix
// "Exception" and without what their form tells (see awsInvalidForm). The word
// is no class: AWS calls invalid a request that can never work, a key that it
// does not know, a page token that has expired, a thing that is still being
// made. Only what is wrong in the request itself is the user's.
var awsInvalid = map[string]awsRule{
	// EC2 "Error codes for the Amazon EC2 API", and "Common errors" of all.
	"InvalidAction": awsWrong, "InvalidQueryParameter": awsWrong, "InvalidCharacter": awsWrong, "InvalidFormat": awsWrong,
	"InvalidFilter": awsWrong, "InvalidMaxResults": awsWrong, "InvalidZone.NotFound": awsWrong,
	// IAM, KMS, Route 53, Elastic Load Balancing.
	"InvalidArn": awsWrong, "InvalidAliasName": awsWrong, "InvalidKeyUsage": awsWrong, "InvalidDomainName": awsWrong,
	"InvalidScheme": awsWrong, "InvalidConfigurationRequest": awsWrong,
	// S3 "Error responses".
	"InvalidBucketName": awsWrong, "InvalidLocationConstraint": awsWrong, "InvalidPolicyDocument": awsWrong, "InvalidURI": awsWrong,
	"InvalidTag": awsWrong, "InvalidEncryptionAlgorithmError": awsWrong, "InvalidStorageClass": awsWrong, "InvalidObjectState": awsWrong,

	"InvalidAccessKeyId": awsBadKey, "InvalidClientTokenId": awsBadKey, "InvalidToken": awsBadKey, "InvalidSecurity": awsBadKey,
	"InvalidSignature": awsBadKey, "InvalidIdentityToken": awsBadKey, "InvalidGrantToken": awsBadKey, "InvalidPayer": {Auth, OwnerOperator, hintAWSGrant},

	// A list that went on too long begins anew.
	"InvalidPaginationToken": awsAgain, "InvalidNextToken": awsAgain, "InvalidMarker": awsAgain,
	// What was sent arrived damaged.
	"InvalidDigest": {class: Transient},

	// What the request refers to is not there, not yet, or not ours to use.
	"InvalidVPCId": awsRefers, "InvalidSubnet": awsRefers, "InvalidSecurityGroup": awsRefers, "InvalidTarget": awsRefers, "InvalidLoadBalancer": awsRefers,
}

// awsInvalidForm tells the class of an Invalid… code by its parts. One that
// nothing is known of is a Dependency of the operator's: it shows at once, like
// what is wrong for good, and is tried again in minutes, like what passes. To
// call it the user's would hold an object for an hour over something that the
// user has never written.
func awsInvalidForm(code, message string) awsRule {
	message = strings.ToLower(message)
	if rule, ok := awsInvalid[code]; ok {
		if rule == awsBadKey && saysExpired(message) {
			return awsBadTime
		}
		return rule
	}
	_, detail, _ := strings.Cut(code, ".")
	switch {
	case code == "InvalidChangeBatch" && saysChanged(message):
		return awsAgain
	case code == "InvalidChangeBatch":
		return awsWrong
	case detail == "Conflict":
		return awsRule{Conflict, OwnerOperator, hintAWSTaken}
	case detail == "Malformed", detail == "Range", detail == "Reserved", detail == "ZoneMismatch", detail == "Unsupported":
		return awsWrong
	case strings.HasSuffix(code, "State"), strings.HasSuffix(code, "StateTransition"):
		return awsBusy
	case strings.HasPrefix(code, "InvalidParameter"), strings.HasPrefix(code, "InvalidArgument"),
		code == "InvalidInput", code == "InvalidRequest", code == "InvalidAttributeValue":
		if saysMissing(message) {
			return awsRefers
		}
		return awsWrong
	}
	return awsRefers
}

// saysMissing recognises an AWS message about something that the request names
// and that AWS does not know, or does not know yet.
func saysMissing(message string) bool {
	for _, words := range []string{"does not exist", "do not exist", "doesn't exist", "not found", "not be found", "cannot find"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// saysChanged recognises Route 53's reasons to refuse a batch of changes whole
// because the zone is not as it was listed.
// https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html
func saysChanged(message string) bool {
	for _, words := range []string{"but it was not found", "but it already exists", "do not match the current values"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// saysExpired recognises a signature that is too old or not valid yet.
func saysExpired(message string) bool {
	return strings.Contains(message, "signature expired") || strings.Contains(message, "signature not yet current")
}
