package faults_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// TestInvalidIsNoClass: of the codes that begin with Invalid, only those that
// say that the request itself is wrong are the user's and wait for an hour.
// Codes and messages are AWS's own.
func TestInvalidIsNoClass(t *testing.T) {
	kms := func(code, message string) answer {
		return answer{400, `{"__type":"` + code + `","message":"` + message + `"}`}
	}
	tests := []struct {
		answer answer
		class  faults.Class
		owner  faults.Owner
	}{
		{answer{400, ec2Error("InvalidParameterValue", "Value (x) for parameter cidrBlock is invalid. This is not a valid CIDR block.")}, faults.Invalid, faults.OwnerUser},
		{answer{400, ec2Error("InvalidParameterCombination", "The parameter acceptanceRequired cannot be used with the parameter x")}, faults.Invalid, faults.OwnerUser},
		{answer{400, ec2Error("InvalidVpcID.Malformed", `Invalid id: "x" (expecting "vpc-...")`)}, faults.Invalid, faults.OwnerUser},
		{answer{400, ec2Error("InvalidVpc.Range", "The CIDR '10.0.0.0/8' is invalid.")}, faults.Invalid, faults.OwnerUser},
		{answer{400, ec2Error("InvalidZone.NotFound", "The zone 'us-west-2x' does not exist")}, faults.Invalid, faults.OwnerUser},
		{answer{400, ec2Error("InvalidVpcID.NotFound", "The vpc ID 'vpc-1' does not exist")}, faults.Gone, ""},
		{answer{400, ec2Error("InvalidVolume.NotFound", "The volume 'vol-1' does not exist.")}, faults.Gone, ""},
		{answer{400, ec2Error("InvalidGroup.InUse", "There are active instances using security group 'x'")}, faults.Dependency, faults.OwnerOperator},
		{answer{400, ec2Error("InvalidNetworkInterface.InUse", "The network interface is in use.")}, faults.Dependency, faults.OwnerOperator},
		{answer{400, ec2Error("InvalidPermission.Duplicate", "the specified rule already exists")}, faults.Conflict, faults.OwnerOperator},
		{answer{400, ec2Error("InvalidSubnet.Conflict", "The CIDR '10.250.0.0/19' conflicts with another subnet")}, faults.Conflict, faults.OwnerOperator},
		{answer{400, ec2Error("InvalidParameterValue", "Value (ic-x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name: it does not exist")}, faults.Dependency, faults.OwnerOperator},
		{answer{400, ec2Error("InvalidParameter", "Network Load Balancer arn:aws:elasticloadbalancing:x does not exist")}, faults.Dependency, faults.OwnerOperator},
		{answer{400, ec2Error("InvalidState", "vpce-svc-1 is in the wrong state")}, faults.Transient, faults.OwnerProvider},
		{answer{400, ec2Error("InvalidStateTransition", "Invalid state transition for pcx-1")}, faults.Transient, faults.OwnerProvider},
		{answer{400, ec2Error("InvalidNextToken", "The pagination token is invalid")}, faults.Transient, ""},
		{answer{400, ec2Error("InvalidBrandNewThing", "something")}, faults.Dependency, faults.OwnerOperator},
		{answer{403, queryError(iamNS, "InvalidClientTokenId", "The security token included in the request is invalid.")}, faults.Auth, faults.OwnerOperator},
		{answer{403, queryError(iamNS, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided.")}, faults.Auth, faults.OwnerOperator},
		{answer{403, queryError(iamNS, "SignatureDoesNotMatch", "Signature expired: 20261130T000000Z is now earlier than 20261130T010000Z")}, faults.Transient, faults.OwnerOperator},
		{answer{400, queryError(iamNS, "InvalidInput", "1 validation error")}, faults.Invalid, faults.OwnerUser},
		{answer{400, queryError(iamNS, "MalformedPolicyDocument", "Invalid principal in policy: FEDERATED:arn:aws:iam::1:oidc-provider/x")}, faults.Dependency, faults.OwnerOperator},
		{kms("InvalidSignatureException", "Signature expired: 20261130T000000Z is now earlier than 20261130T010000Z"), faults.Transient, faults.OwnerOperator},
		{kms("InvalidSignatureException", "The request signature we calculated does not match"), faults.Auth, faults.OwnerOperator},
		{kms("InvalidMarkerException", "The marker is not valid"), faults.Transient, ""},
		{kms("InvalidAliasNameException", "Alias must start with the prefix alias/"), faults.Invalid, faults.OwnerUser},
		{kms("BrandNewException", "something"), faults.Dependency, faults.OwnerOperator},
		{answer{403, s3Error("InvalidSecurity", "The provided security credentials are not valid.")}, faults.Auth, faults.OwnerOperator},
		{answer{400, s3Error("InvalidToken", "The provided token is malformed or otherwise invalid.")}, faults.Auth, faults.OwnerOperator},
		{answer{409, s3Error("InvalidBucketState", "The request is not valid with the current state of the bucket.")}, faults.Transient, faults.OwnerProvider},
		{answer{400, s3Error("InvalidBucketName", "The specified bucket is not valid.")}, faults.Invalid, faults.OwnerUser},
		{answer{400, s3Error("InvalidDigest", "The Content-MD5 you specified is not valid.")}, faults.Transient, ""},
		{answer{400, queryError(r53NS, "InvalidVPCId", "The VPC: vpc-1 with the region us-west-2 does not exist")}, faults.Dependency, faults.OwnerOperator},
		{answer{400, queryError(r53NS, "InvalidPaginationToken", "The value that you specified to get the second or subsequent page of results is invalid.")}, faults.Transient, ""},
		{answer{400, queryError(r53NS, "InvalidDomainName", "The domain name that you specified is not valid.")}, faults.Invalid, faults.OwnerUser},
		{answer{400, queryError(r53NS, "InvalidChangeBatch", "[Tried to delete resource record set [name='a.x.', type='TXT'] but it was not found]")}, faults.Transient, ""},
		{answer{400, queryError(r53NS, "InvalidChangeBatch", "[Tried to delete resource record set [name='a.x.', type='TXT'] but the values provided do not match the current values]")}, faults.Transient, ""},
		{answer{400, queryError(r53NS, "InvalidChangeBatch", "[Tried to create resource record set [name='a.x.', type='CNAME'] but it already exists]")}, faults.Transient, ""},
		{answer{400, queryError(r53NS, "InvalidChangeBatch", "[RRSet of type CNAME with DNS name x. is not permitted at apex in zone x.]")}, faults.Invalid, faults.OwnerUser},
		{answer{400, queryError(elbNS, "InvalidSubnet", "The subnet ID 'subnet-1' is not valid")}, faults.Dependency, faults.OwnerOperator},
		{answer{400, queryError(elbNS, "InvalidScheme", "The requested scheme is not valid.")}, faults.Invalid, faults.OwnerUser},
	}
	for _, tt := range tests {
		t.Run(tt.answer.body, func(t *testing.T) {
			via := viaEC2
			switch {
			case strings.HasPrefix(tt.answer.body, "{"):
				via = viaKMS
			case strings.Contains(tt.answer.body, r53NS):
				via = viaRoute53
			case strings.Contains(tt.answer.body, elbNS):
				via = viaELB
			case strings.Contains(tt.answer.body, iamNS):
				via = viaIAM
			case strings.Contains(tt.answer.body, "HostId"):
				via = viaS3
			}
			f := faults.As(faults.FromAWS(via(tt.answer.config(t)), "thing t"))
			require.NotNil(t, f)
			require.Equal(t, tt.class, f.Class, f)
			require.Equal(t, tt.owner, f.Owner, f)
			if f.Class != faults.Invalid && f.Class != faults.Gone && f.Class != faults.Conflict {
				require.Less(t, f.Class.RetryAfter(), time.Hour, f)
			}
		})
	}
}
