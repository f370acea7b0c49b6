package awsproxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// The services that the proxy knows, by their names in a credential scope.
const (
	serviceEC2     = "ec2"
	serviceELB     = "elasticloadbalancing"
	serviceIAM     = "iam"
	serviceKMS     = "kms"
	serviceRoute53 = "route53"
	serviceS3      = "s3"
	serviceSTS     = "sts"
)

// queryVersions are the API versions of the services with the query protocol.
var queryVersions = map[string]string{
	"2016-11-15": serviceEC2,
	"2015-12-01": serviceELB,
	"2010-05-08": serviceIAM,
	"2011-06-15": serviceSTS,
}

// maxBody bounds a request; multipart parts of the samples are far below.
const maxBody = 64 << 20

// request is one AWS call, decoded as far as its protocol allows.
type request struct {
	http *http.Request
	body []byte

	service, operation string
	region             string
	accessKey          string
	account            string // filled by the proxy

	// form holds the parameters of the query protocol.
	form url.Values
	// json holds the members of the JSON protocol.
	json map[string]any
	// params are the named parts of a REST path, such as Bucket and Key.
	params map[string]string
}

// credentialScope finds "AKID/20261130/us-west-2/ec2/aws4_request".
var credentialScope = regexp.MustCompile(`Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/aws4_request`)

// parseRequest reads the request and names its operation. It fails only when
// the body cannot be read.
func parseRequest(r *http.Request) (*request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("the request is larger than %d bytes", maxBody)
	}
	req := &request{http: r, body: body, region: "us-east-1"}
	scope := r.Header.Get("Authorization")
	if presigned := r.URL.Query().Get("X-Amz-Credential"); presigned != "" {
		scope = "Credential=" + presigned
	}
	if m := credentialScope.FindStringSubmatch(scope); m != nil {
		req.accessKey, req.region, req.service = m[1], m[2], m[3]
	}
	req.identify()
	return req, nil
}

// identify finds service and operation: by X-Amz-Target (JSON), by Action
// (query), else by method and path (REST).
func (r *request) identify() {
	if target := r.http.Header.Get("X-Amz-Target"); target != "" {
		_, r.operation, _ = strings.Cut(target, ".")
		if strings.HasPrefix(target, "TrentService.") {
			r.service = serviceKMS
		}
		// A body that is no JSON is left to moto's judgement.
		_ = json.Unmarshal(r.body, &r.json)
		return
	}
	r.form = r.http.URL.Query()
	if strings.HasPrefix(r.http.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if form, err := url.ParseQuery(string(r.body)); err == nil {
			r.form = form
		}
	}
	if action := r.form.Get("Action"); action != "" {
		r.operation = action
		if service, ok := queryVersions[r.form.Get("Version")]; ok {
			r.service = service
		}
		return
	}
	if strings.HasPrefix(r.http.URL.Path, "/2013-04-01/") {
		r.service = serviceRoute53
		r.operation, r.params = route53Operation(r.http.Method, r.http.URL.Path)
		return
	}
	if r.service == "" {
		r.service = serviceS3
	}
	if r.service == serviceS3 {
		r.operation, r.params = s3Operation(r.http)
	}
	if r.operation == "" {
		r.operation = r.http.Method + " " + r.http.URL.Path
	}
}

// list returns Name.1, Name.2, ... of the query protocol; also Name.member.1
// (elasticloadbalancing, iam).
func (r *request) list(name string) []string {
	var values []string
	for i := 1; ; i++ {
		v, ok := r.form[fmt.Sprintf("%s.%d", name, i)]
		if !ok {
			v, ok = r.form[fmt.Sprintf("%s.member.%d", name, i)]
		}
		if !ok {
			return values
		}
		values = append(values, v[0])
	}
}

// text returns a string member of the JSON protocol.
func (r *request) text(name string) string {
	s, _ := r.json[name].(string)
	return s
}

// haystack is the request as people write about it, to match a fault's resource
// selector: path, query, and the decoded parameters or the body.
func (r *request) haystack() string {
	var b strings.Builder
	b.WriteString(r.http.URL.Path)
	b.WriteByte('\n')
	if r.form != nil && r.form.Has("Action") {
		for _, key := range slices.Sorted(mapKeys(r.form)) {
			fmt.Fprintf(&b, "%s=%s\n", key, strings.Join(r.form[key], ","))
		}
		return b.String()
	}
	b.WriteString(r.http.URL.RawQuery)
	if r.service != serviceS3 {
		b.WriteByte('\n')
		b.Write(r.body)
	}
	return b.String()
}

// subjects are the parameters that name what a call is about, best first.
var subjects = []string{
	"RoleName", "InstanceProfileName", "OpenIDConnectProviderArn", "Url", "PolicyArn",
	"LoadBalancerArn", "TargetGroupArn", "ListenerArn", "LoadBalancerArns.member.1", "ResourceArns.member.1", "Name",
	"ServiceId", "ServiceId.1", "VpcEndpointId.1", "NatGatewayId", "NatGatewayId.1", "SubnetId", "SubnetId.1",
	"InternetGatewayId", "RouteTableId", "RouteTableId.1", "GroupId", "GroupId.1", "GroupName", "AllocationId",
	"ResourceId.1", "KeyName", "VpcId", "VpcId.1", "Filter.1.Value.1", "CidrBlock", "RoleArn",
}

// resource is the first name, id or ARN of the request, for a list of calls.
func (r *request) resource() string {
	switch {
	case r.json != nil:
		for _, name := range []string{"AliasName", "KeyId", "TargetKeyId"} {
			if s := r.text(name); s != "" {
				return s
			}
		}
	case r.form.Has("Action"):
		for _, name := range subjects {
			if s := r.form.Get(name); s != "" {
				return s
			}
		}
	case r.params["Bucket"] != "":
		return strings.TrimSuffix(r.params["Bucket"]+"/"+r.params["Key"], "/")
	default:
		return r.params["Id"]
	}
	return ""
}
