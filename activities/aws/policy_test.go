package aws

import (
	"net/url"
	"testing"

	r53types "github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

func TestTrustPolicy(t *testing.T) {
	in := roleInput()
	require.JSONEq(t, `{"Version":"2012-10-17","Statement":[{
		"Effect":"Allow",
		"Principal":{"Federated":"arn:aws:iam::123456789012:oidc-provider/i.example.com"},
		"Action":["sts:AssumeRoleWithWebIdentity"],
		"Condition":{"StringEquals":{
			"i.example.com:aud":["sts.amazonaws.com"],
			"i.example.com:sub":["system:serviceaccount:ns:a"]}}}]}`, trustPolicy(in).String())
}

func TestAccessPolicy(t *testing.T) {
	tests := []struct {
		name string
		in   contract.IdentityInput
		want string
	}{
		{"nothing", contract.IdentityInput{}, `{"Version":"2012-10-17","Statement":null}`},
		{"key only", contract.IdentityInput{KeyID: "arn:k"}, `{"Version":"2012-10-17","Statement":[
			{"Sid":"Key","Effect":"Allow","Resource":["arn:k"],"Action":["kms:Encrypt","kms:Decrypt","kms:ReEncrypt*","kms:GenerateDataKey*","kms:DescribeKey"]}]}`},
		{"prefix", contract.IdentityInput{Bucket: "b", Prefix: "/c1/"}, `{"Version":"2012-10-17","Statement":[
			{"Sid":"List","Effect":"Allow","Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::b"],"Condition":{"StringLike":{"s3:prefix":["c1","c1/*"]}}},
			{"Sid":"Bucket","Effect":"Allow","Action":["s3:GetBucketLocation","s3:ListBucketMultipartUploads"],"Resource":["arn:aws:s3:::b"]},
			{"Sid":"Objects","Effect":"Allow","Resource":["arn:aws:s3:::b/c1/*"],
			 "Action":["s3:GetObject","s3:PutObject","s3:DeleteObject","s3:AbortMultipartUpload","s3:ListMultipartUploadParts"]}]}`},
		{"whole bucket", contract.IdentityInput{Bucket: "b"}, `{"Version":"2012-10-17","Statement":[
			{"Sid":"List","Effect":"Allow","Action":["s3:ListBucket"],"Resource":["arn:aws:s3:::b"]},
			{"Sid":"Bucket","Effect":"Allow","Action":["s3:GetBucketLocation","s3:ListBucketMultipartUploads"],"Resource":["arn:aws:s3:::b"]},
			{"Sid":"Objects","Effect":"Allow","Resource":["arn:aws:s3:::b/*"],
			 "Action":["s3:GetObject","s3:PutObject","s3:DeleteObject","s3:AbortMultipartUpload","s3:ListMultipartUploadParts"]}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.JSONEq(t, tt.want, accessPolicy("aws", tt.in).String())
		})
	}
}

func TestSamePolicy(t *testing.T) {
	want := trustPolicy(roleInput())
	// IAM encodes, and people write lists of one as strings.
	require.True(t, samePolicy(url.QueryEscape(want.String()), want))
	require.True(t, samePolicy(`{"Version":"2012-10-17","Statement":{"Effect":"Allow",
		"Principal":{"Federated":"arn:aws:iam::123456789012:oidc-provider/i.example.com"},"Action":"sts:AssumeRoleWithWebIdentity",
		"Condition":{"StringEquals":{"i.example.com:aud":"sts.amazonaws.com","i.example.com:sub":"system:serviceaccount:ns:a"}}}}`, want))
	require.False(t, samePolicy(`{"Version":"2012-10-17","Statement":[]}`, want))
	require.False(t, samePolicy("not JSON", want))
}

func TestUpserts(t *testing.T) {
	type zone = map[string]map[r53types.RRType]r53types.ResourceRecordSet
	set := func(name string, kind r53types.RRType, value string) map[r53types.RRType]r53types.ResourceRecordSet {
		return map[r53types.RRType]r53types.ResourceRecordSet{kind: *upsert(name, kind, value).ResourceRecordSet}
	}
	ours := set("_owner.a.z", r53types.RRTypeTxt, ownerValue(fakeOwner.ID))
	theirs := set("_owner.a.z", r53types.RRTypeTxt, ownerValue("ffffffffffffffff"))
	tests := []struct {
		name     string
		have     zone
		changes  int
		conflict bool
	}{
		{"nothing there", zone{}, 2, false},
		{"as it should be, with a last dot", zone{"a.z": set("a.z", r53types.RRTypeCname, "LB.example.net."), "_owner.a.z": ours}, 0, false},
		{"another target", zone{"a.z": set("a.z", r53types.RRTypeCname, "old.example.net"), "_owner.a.z": ours}, 2, false},
		{"mark without record", zone{"_owner.a.z": ours}, 2, false},
		{"record without mark", zone{"a.z": set("a.z", r53types.RRTypeCname, "lb.example.net")}, 0, true},
		{"another kind of record without mark", zone{"a.z": set("a.z", r53types.RRTypeA, "10.0.0.1")}, 0, true},
		{"another's mark", zone{"_owner.a.z": theirs}, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			changes, err := upserts(tt.have, contract.Record{Name: "a.z", Target: "lb.example.net"}, fakeOwner)
			if tt.conflict {
				requireConflict(t, err)
				return
			}
			require.NoError(t, err)
			require.Len(t, changes, tt.changes)
		})
	}
}
