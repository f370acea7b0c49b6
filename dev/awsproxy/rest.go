package awsproxy

import (
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// mapKeys is maps.Keys for url.Values, whose type does not infer.
func mapKeys(values url.Values) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range values {
			if !yield(key) {
				return
			}
		}
	}
}

// route53Routes are the operations of Route 53 that this project and its users
// are likely to call; others are named by method and path.
var route53Routes = []struct {
	method, operation string
	path              *regexp.Regexp
}{
	{"POST", "CreateHostedZone", regexp.MustCompile(`^/hostedzone/?$`)},
	{"GET", "ListHostedZones", regexp.MustCompile(`^/hostedzone/?$`)},
	{"GET", "ListHostedZonesByName", regexp.MustCompile(`^/hostedzonesbyname/?$`)},
	{"GET", "ListHostedZonesByVPC", regexp.MustCompile(`^/hostedzonesbyvpc/?$`)},
	{"GET", "GetHostedZoneCount", regexp.MustCompile(`^/hostedzonecount/?$`)},
	{"GET", "GetHostedZone", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/?$`)},
	{"POST", "UpdateHostedZoneComment", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/?$`)},
	{"DELETE", "DeleteHostedZone", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/?$`)},
	{"POST", "ChangeResourceRecordSets", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/rrset/?$`)},
	{"GET", "ListResourceRecordSets", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/rrset/?$`)},
	{"POST", "AssociateVPCWithHostedZone", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/associatevpc/?$`)},
	{"POST", "DisassociateVPCFromHostedZone", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/disassociatevpc/?$`)},
	{"POST", "CreateVPCAssociationAuthorization", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/authorizevpcassociation/?$`)},
	{"GET", "ListVPCAssociationAuthorizations", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/authorizevpcassociation/?$`)},
	{"POST", "DeleteVPCAssociationAuthorization", regexp.MustCompile(`^/hostedzone/(?P<Id>[^/]+)/deauthorizevpcassociation/?$`)},
	{"GET", "GetChange", regexp.MustCompile(`^/change/(?P<Id>[^/]+)/?$`)},
	{"POST", "ChangeTagsForResource", regexp.MustCompile(`^/tags/(?P<Type>[^/]+)/(?P<Id>[^/]+)/?$`)},
	{"GET", "ListTagsForResource", regexp.MustCompile(`^/tags/(?P<Type>[^/]+)/(?P<Id>[^/]+)/?$`)},
	{"POST", "ListTagsForResources", regexp.MustCompile(`^/tags/(?P<Type>[^/]+)/?$`)},
}

// route53Operation names the operation of a path such as
// /2013-04-01/hostedzone/Z1/rrset.
func route53Operation(method, path string) (operation string, params map[string]string) {
	path = strings.TrimPrefix(path, "/2013-04-01")
	for _, route := range route53Routes {
		m := route.path.FindStringSubmatch(path)
		if m == nil || route.method != method {
			continue
		}
		params = map[string]string{}
		for i, name := range route.path.SubexpNames() {
			if name != "" {
				params[name] = m[i]
			}
		}
		return route.operation, params
	}
	return method + " " + path, nil
}

// s3Subresources maps a query parameter of a bucket to the noun of its
// operations: PutBucketTagging, GetBucketTagging, DeleteBucketTagging.
var s3Subresources = map[string]string{
	"accelerate": "BucketAccelerateConfiguration", "acl": "BucketAcl", "cors": "BucketCors",
	"encryption": "BucketEncryption", "lifecycle": "BucketLifecycleConfiguration", "location": "BucketLocation",
	"logging": "BucketLogging", "notification": "BucketNotificationConfiguration",
	"object-lock": "ObjectLockConfiguration", "ownershipControls": "BucketOwnershipControls",
	"policy": "BucketPolicy", "policyStatus": "BucketPolicyStatus", "publicAccessBlock": "PublicAccessBlock",
	"replication": "BucketReplication", "requestPayment": "BucketRequestPayment", "tagging": "BucketTagging",
	"versioning": "BucketVersioning", "website": "BucketWebsite",
}

var s3Verbs = map[string]string{http.MethodGet: "Get", http.MethodPut: "Put", http.MethodDelete: "Delete"}

// s3Operation names the operation of a path-style request.
func s3Operation(r *http.Request) (operation string, params map[string]string) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	if bucket == "" {
		return "ListBuckets", nil
	}
	params = map[string]string{"Bucket": bucket, "Key": key}
	if key != "" {
		return s3ObjectOperation(r, query), params
	}
	return s3BucketOperation(r.Method, query), params
}

func s3BucketOperation(method string, query url.Values) string {
	for parameter, noun := range s3Subresources {
		if query.Has(parameter) && s3Verbs[method] != "" {
			return s3Verbs[method] + noun
		}
	}
	switch {
	case method == http.MethodGet && query.Has("versions"):
		return "ListObjectVersions"
	case method == http.MethodGet && query.Has("uploads"):
		return "ListMultipartUploads"
	case method == http.MethodGet && query.Get("list-type") == "2":
		return "ListObjectsV2"
	case method == http.MethodGet:
		return "ListObjects"
	case method == http.MethodPost && query.Has("delete"):
		return "DeleteObjects"
	case method == http.MethodPut:
		return "CreateBucket"
	case method == http.MethodDelete:
		return "DeleteBucket"
	case method == http.MethodHead:
		return "HeadBucket"
	}
	return method + " bucket"
}

func s3ObjectOperation(r *http.Request, query url.Values) string {
	switch {
	case query.Has("tagging") && s3Verbs[r.Method] != "":
		return s3Verbs[r.Method] + "ObjectTagging"
	case r.Method == http.MethodPost && query.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost && query.Has("uploadId"):
		return "CompleteMultipartUpload"
	case r.Method == http.MethodPut && query.Has("uploadId"):
		return "UploadPart"
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		return "AbortMultipartUpload"
	case r.Method == http.MethodGet && query.Has("uploadId"):
		return "ListParts"
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return "CopyObject"
	case r.Method == http.MethodPut:
		return "PutObject"
	case r.Method == http.MethodGet:
		return "GetObject"
	case r.Method == http.MethodHead:
		return "HeadObject"
	case r.Method == http.MethodDelete:
		return "DeleteObject"
	}
	return r.Method + " object"
}
