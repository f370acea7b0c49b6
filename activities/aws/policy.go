package aws

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// audience is the aud claim that AWS SDKs in a Pod ask for.
const audience = "sts.amazonaws.com"

// policy is an IAM policy document.
type policy struct {
	Version   string
	Statement []statement
}

// statement is one statement of a policy. Fields are in IAM's usual order.
type statement struct {
	Sid       string                         `json:",omitempty"`
	Effect    string                         `json:",omitempty"`
	Principal map[string]string              `json:",omitempty"`
	Action    []string                       `json:",omitempty"`
	Resource  []string                       `json:",omitempty"`
	Condition map[string]map[string][]string `json:",omitempty"`
}

func (p policy) String() string {
	b, _ := json.Marshal(p) // strings and maps of strings always marshal
	return string(b)
}

// trustPolicy lets the service accounts of in.Subjects, and nobody else,
// assume the role by a token of the Network's issuer.
func trustPolicy(in contract.IdentityInput) policy {
	issuer := strings.TrimPrefix(in.Issuer, "https://")
	return policy{Version: "2012-10-17", Statement: []statement{{
		Effect:    "Allow",
		Principal: map[string]string{"Federated": in.IssuerID},
		Action:    []string{"sts:AssumeRoleWithWebIdentity"},
		Condition: map[string]map[string][]string{"StringEquals": {
			issuer + ":aud": {audience},
			issuer + ":sub": in.Subjects,
		}},
	}}}
}

// accessPolicy grants the bucket's prefix and the use of the key. It has no
// statements when the input names neither.
func accessPolicy(partition string, in contract.IdentityInput) policy {
	p := policy{Version: "2012-10-17"}
	if in.Bucket != "" {
		bucket := "arn:" + partition + ":s3:::" + in.Bucket
		prefix := strings.Trim(in.Prefix, "/")
		objects, list := bucket+"/*", statement{
			Sid: "List", Effect: "Allow", Action: []string{"s3:ListBucket"}, Resource: []string{bucket},
		}
		if prefix != "" {
			objects = bucket + "/" + prefix + "/*"
			list.Condition = map[string]map[string][]string{"StringLike": {"s3:prefix": {prefix, prefix + "/*"}}}
		}
		p.Statement = append(p.Statement,
			list,
			statement{
				Sid: "Bucket", Effect: "Allow", Resource: []string{bucket},
				Action: []string{"s3:GetBucketLocation", "s3:ListBucketMultipartUploads"},
			},
			statement{
				Sid: "Objects", Effect: "Allow", Resource: []string{objects},
				Action: []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject",
					"s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"},
			})
	}
	if in.KeyID != "" {
		p.Statement = append(p.Statement, statement{
			Sid: "Key", Effect: "Allow", Resource: []string{in.KeyID},
			Action: []string{"kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"},
		})
	}
	return p
}

// samePolicy compares a document as IAM returns it, URL-encoded and with lists
// of one element maybe made plain strings, with one of ours.
func samePolicy(encoded string, want policy) bool {
	text, err := url.QueryUnescape(encoded)
	if err != nil {
		text = encoded
	}
	var a, b any
	if json.Unmarshal([]byte(text), &a) != nil || json.Unmarshal([]byte(want.String()), &b) != nil {
		return false
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

// plain replaces lists of one element by the element.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		if len(v) == 1 {
			return v[0]
		}
	}
	return v
}
