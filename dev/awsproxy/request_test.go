package awsproxy

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestParseRequestNamesTheOperation(t *testing.T) {
	const form = "application/x-www-form-urlencoded; charset=utf-8"
	for name, tc := range map[string]struct {
		method, target, contentType, amzTarget, scope, body string
		service, operation, resource                        string
	}{
		"ec2":                       {"POST", "/", form, "", "ec2", "Action=CreateVpc&Version=2016-11-15&CidrBlock=10.0.0.0%2F16", "ec2", "CreateVpc", "10.0.0.0/16"},
		"ec2 without a signature":   {"POST", "/", form, "", "", "Action=DeleteVpc&Version=2016-11-15&VpcId=vpc-1", "ec2", "DeleteVpc", "vpc-1"},
		"elb":                       {"POST", "/", form, "", "elasticloadbalancing", "Action=DescribeTags&Version=2015-12-01&ResourceArns.member.1=arn%3Ax", "elasticloadbalancing", "DescribeTags", "arn:x"},
		"iam":                       {"POST", "/", form, "", "iam", "Action=CreateRole&Version=2010-05-08&RoleName=r", "iam", "CreateRole", "r"},
		"sts":                       {"POST", "/", form, "", "sts", "Action=GetCallerIdentity&Version=2011-06-15", "sts", "GetCallerIdentity", ""},
		"kms":                       {"POST", "/", "application/x-amz-json-1.1", "TrentService.CreateAlias", "kms", `{"AliasName":"alias/a","TargetKeyId":"k"}`, "kms", "CreateAlias", "alias/a"},
		"route53 create":            {"POST", "/2013-04-01/hostedzone", "application/xml", "", "route53", "<x/>", "route53", "CreateHostedZone", ""},
		"route53 records":           {"POST", "/2013-04-01/hostedzone/Z1/rrset/", "application/xml", "", "route53", "<x/>", "route53", "ChangeResourceRecordSets", "Z1"},
		"route53 change":            {"GET", "/2013-04-01/change/C1", "", "", "route53", "", "route53", "GetChange", "C1"},
		"route53 unknown":           {"GET", "/2013-04-01/healthcheck", "", "", "route53", "", "route53", "GET /healthcheck", ""},
		"s3 list buckets":           {"GET", "/?x-id=ListBuckets", "", "", "s3", "", "s3", "ListBuckets", ""},
		"s3 create":                 {"PUT", "/b1", "", "", "s3", "", "s3", "CreateBucket", "b1"},
		"s3 tagging":                {"PUT", "/b1?tagging", "", "", "s3", "", "s3", "PutBucketTagging", "b1"},
		"s3 public access":          {"GET", "/b1?publicAccessBlock", "", "", "s3", "", "s3", "GetPublicAccessBlock", "b1"},
		"s3 delete lifecycle":       {"DELETE", "/b1?lifecycle", "", "", "s3", "", "s3", "DeleteBucketLifecycleConfiguration", "b1"},
		"s3 versions":               {"GET", "/b1?versions", "", "", "s3", "", "s3", "ListObjectVersions", "b1"},
		"s3 batch delete":           {"POST", "/b1?delete", "", "", "s3", "<x/>", "s3", "DeleteObjects", "b1"},
		"s3 head":                   {"HEAD", "/b1", "", "", "s3", "", "s3", "HeadBucket", "b1"},
		"s3 object":                 {"PUT", "/b1/a/b?x-id=PutObject", "", "", "s3", "x", "s3", "PutObject", "b1/a/b"},
		"s3 upload part":            {"PUT", "/b1/a?partNumber=1&uploadId=u", "", "", "s3", "x", "s3", "UploadPart", "b1/a"},
		"s3 abort":                  {"DELETE", "/b1/a?uploadId=u", "", "", "s3", "", "s3", "AbortMultipartUpload", "b1/a"},
		"a service nobody heard of": {"GET", "/things", "", "", "newservice", "", "newservice", "GET /things", ""},
	} {
		t.Run(name, func(t *testing.T) {
			hr := httptest.NewRequest(tc.method, tc.target, strings.NewReader(tc.body))
			hr.Header.Set("Content-Type", tc.contentType)
			if tc.amzTarget != "" {
				hr.Header.Set("X-Amz-Target", tc.amzTarget)
			}
			if tc.scope != "" {
				hr.Header.Set("Authorization", authorization("AKIA1", "eu-west-1", tc.scope))
			}
			r, err := parseRequest(hr)
			if err != nil {
				t.Fatal(err)
			}
			if r.service != tc.service || r.operation != tc.operation || r.resource() != tc.resource {
				t.Errorf("got %s %s %q, want %s %s %q", r.service, r.operation, r.resource(), tc.service, tc.operation, tc.resource)
			}
			if tc.scope != "" && (r.accessKey != "AKIA1" || r.region != "eu-west-1") {
				t.Errorf("access key %q, region %q", r.accessKey, r.region)
			}
		})
	}
}
