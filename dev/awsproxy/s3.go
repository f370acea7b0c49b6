package awsproxy

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

const s3Namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

// bucketName is the rule for general purpose buckets; dots next to dots and
// names like addresses are checked apart.
var (
	bucketName    = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	bucketAddress = regexp.MustCompile(`^\d+\.\d+\.\d+\.\d+$`)
)

// createBucket checks the name and sets the tags of the configuration, which
// moto drops.
func createBucket(p *Proxy, ctx context.Context, r *request) *response {
	name := r.params["Bucket"]
	if !bucketName.MatchString(name) || bucketAddress.MatchString(name) || strings.Contains(name, "..") {
		return r.fail(http.StatusBadRequest, "InvalidBucketName", "The specified bucket is not valid.")
	}
	var configuration struct {
		Tags []struct {
			Key   string
			Value string
		} `xml:"Tags>Tag"`
	}
	if len(r.body) > 0 {
		if err := xml.Unmarshal(r.body, &configuration); err != nil {
			return r.fail(http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed")
		}
	}
	res := p.moto(ctx, r)
	if !res.ok() || len(configuration.Tags) == 0 {
		return res
	}
	var set strings.Builder
	for _, t := range configuration.Tags {
		fmt.Fprintf(&set, "<Tag><Key>%s</Key><Value>%s</Value></Tag>", escape(t.Key), escape(t.Value))
	}
	body := fmt.Sprintf(`<Tagging xmlns="%s"><TagSet>%s</TagSet></Tagging>`, s3Namespace, set.String())
	if tagged := p.bucketCall(ctx, r, http.MethodPut, "tagging", body); !tagged.ok() {
		return tagged
	}
	return res
}

// deleteBucket counts unfinished uploads as contents, too.
func deleteBucket(p *Proxy, ctx context.Context, r *request) *response {
	uploads := p.bucketCall(ctx, r, http.MethodGet, "uploads", "")
	if uploads.ok() && strings.Contains(string(uploads.body), "<UploadId>") {
		return r.fail(http.StatusConflict, "BucketNotEmpty", "The bucket you tried to delete is not empty")
	}
	return p.moto(ctx, r)
}

// bucketEncryption answers SSE-S3 for a bucket that was never configured.
func bucketEncryption(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if res.code() != "ServerSideEncryptionConfigurationNotFoundError" {
		return res
	}
	return newResponse(http.StatusOK, "application/xml", []byte(xml.Header+
		`<ServerSideEncryptionConfiguration xmlns="`+s3Namespace+`"><Rule><ApplyServerSideEncryptionByDefault>`+
		`<SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault><BucketKeyEnabled>false</BucketKeyEnabled>`+
		`</Rule></ServerSideEncryptionConfiguration>`))
}

// publicAccessBlock answers what new buckets have had since April 2023.
func publicAccessBlock(p *Proxy, ctx context.Context, r *request) *response {
	res := p.moto(ctx, r)
	if res.code() != "NoSuchPublicAccessBlockConfiguration" {
		return res
	}
	return newResponse(http.StatusOK, "application/xml", []byte(xml.Header+
		`<PublicAccessBlockConfiguration xmlns="`+s3Namespace+`"><BlockPublicAcls>true</BlockPublicAcls>`+
		`<IgnorePublicAcls>true</IgnorePublicAcls><BlockPublicPolicy>true</BlockPublicPolicy>`+
		`<RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>`))
}

// bucketCall makes a further call about the same bucket.
func (p *Proxy) bucketCall(ctx context.Context, r *request, method, subresource, body string) *response {
	target := p.upstream + "/" + url.PathEscape(r.params["Bucket"]) + "?" + subresource + "="
	hr, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return r.fail(http.StatusInternalServerError, "InternalError", "the proxy cannot call moto: %v", err)
	}
	hr.Header.Set("Authorization", authorization(r.accessKey, r.region, serviceS3))
	return p.moto(ctx, &request{http: hr, body: []byte(body), service: serviceS3, operation: r.operation})
}
