package awsproxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// operation handles one call itself, or around a call to moto.
type operation func(p *Proxy, ctx context.Context, r *request) *response

// overlay lists what moto lacks or gets wrong. Everything else goes to moto.
var overlay = map[string]operation{
	"ec2.DeleteVpc":             deleteVPC,
	"ec2.DeleteSubnet":          deleteSubnet,
	"ec2.DeleteSecurityGroup":   deleteSecurityGroup,
	"ec2.DetachInternetGateway": detachInternetGateway,
	"ec2.ReleaseAddress":        releaseAddress,
	"ec2.CreateNatGateway":      once(passOn),
	"ec2.DeleteNatGateway":      deleteNATGateway,
	"ec2.CreateVolume":          once(passOn),
	"ec2.DeleteVolume":          deleteVolume,
	"ec2.CreateTags":            createTags,
	"ec2.DeleteTags":            deleteTags,
	"ec2.DescribeTags":          describeTags,

	"ec2.CreateVpcEndpointServiceConfiguration":    once(createEndpointService),
	"ec2.DescribeVpcEndpointServiceConfigurations": describeEndpointServices,
	"ec2.ModifyVpcEndpointServiceConfiguration":    modifyEndpointService,
	"ec2.DeleteVpcEndpointServiceConfigurations":   deleteEndpointServices,
	"ec2.ModifyVpcEndpointServicePermissions":      modifyPermissions,
	"ec2.DescribeVpcEndpointServicePermissions":    describePermissions,
	"ec2.DescribeVpcEndpointConnections":           describeConnections,
	"ec2.AcceptVpcEndpointConnections":             acceptConnections,
	"ec2.RejectVpcEndpointConnections":             rejectConnections,
	"ec2.CreateVpcEndpoint":                        once(createEndpoint),
	"ec2.DescribeVpcEndpoints":                     describeEndpoints,
	"ec2.DeleteVpcEndpoints":                       deleteEndpoints,
	"elasticloadbalancing.CreateLoadBalancer":      createLoadBalancer,
	"elasticloadbalancing.DescribeLoadBalancers":   describeLoadBalancers,
	"elasticloadbalancing.DeleteLoadBalancer":      deleteLoadBalancer,
	"elasticloadbalancing.CreateListener":          createListener,
	"iam.CreateRole":                               checkPolicy("AssumeRolePolicyDocument"),
	"iam.UpdateAssumeRolePolicy":                   checkPolicy("PolicyDocument"),
	"kms.Encrypt":                                  needKey("KeyId", keyEnabled),
	"kms.GenerateDataKey":                          needKey("KeyId", keyEnabled),
	"kms.GenerateDataKeyWithoutPlaintext":          needKey("KeyId", keyEnabled),
	"kms.EnableKeyRotation":                        needKey("KeyId", keyEnabled),
	"kms.DisableKeyRotation":                       needKey("KeyId", keyEnabled),
	"kms.EnableKey":                                needKey("KeyId", keyNotPending),
	"kms.DisableKey":                               needKey("KeyId", keyNotPending),
	"kms.CreateAlias":                              needKey("TargetKeyId", keyNotPending),
	"kms.UpdateAlias":                              needKey("TargetKeyId", keyNotPending),
	"kms.TagResource":                              needKey("KeyId", keyNotPending),
	"kms.UntagResource":                            needKey("KeyId", keyNotPending),
	"kms.UpdateKeyDescription":                     needKey("KeyId", keyNotPending),
	"kms.ScheduleKeyDeletion":                      scheduleKeyDeletion,
	"kms.CancelKeyDeletion":                        needKey("KeyId", keyPending),
	"route53.CreateHostedZone":                     createHostedZone,
	"route53.DeleteHostedZone":                     deleteHostedZone,
	"route53.ChangeResourceRecordSets":             changeRecords,
	"route53.GetChange":                            getChange,
	"route53.AssociateVPCWithHostedZone":           trackedChange,
	"route53.DisassociateVPCFromHostedZone":        trackedChange,
	"s3.CreateBucket":                              createBucket,
	"s3.DeleteBucket":                              deleteBucket,
	"s3.GetBucketEncryption":                       bucketEncryption,
	"s3.GetPublicAccessBlock":                      publicAccessBlock,
	"tagging.GetResources":                         getResources,
}

// passOn is the operation that only moto does.
func passOn(p *Proxy, ctx context.Context, r *request) *response { return p.moto(ctx, r) }

// tokenUse is what a ClientToken was used for.
type tokenUse struct {
	digest string // of the other parameters
	answer *response
}

// once makes an EC2 operation idempotent by its ClientToken: the same token with
// the same parameters gives the first answer again, with others
// IdempotentParameterMismatch. AWS keeps tokens for a day; here they go with
// the resource or with the stack.
func once(op operation) operation {
	return func(p *Proxy, ctx context.Context, r *request) *response {
		token := r.form.Get("ClientToken")
		if token == "" {
			return op(p, ctx, r)
		}
		others := url.Values{}
		for name, values := range r.form {
			if name != "ClientToken" {
				others[name] = values
			}
		}
		sum := sha256.Sum256([]byte(others.Encode()))
		digest := hex.EncodeToString(sum[:])
		key := strings.Join([]string{r.account, r.region, r.operation, token}, "/")
		if use, ok := p.tokens[key]; ok {
			if use.digest != digest {
				return r.fail(http.StatusBadRequest, "IdempotentParameterMismatch",
					"The client token was used before with other parameters: %s", token)
			}
			return use.answer
		}
		res := op(p, ctx, r)
		if res.ok() {
			p.tokens[key] = tokenUse{digest, res}
		}
		return res
	}
}

// forgetTokens drops the tokens that made a resource which is gone.
func (p *Proxy) forgetTokens(id string) {
	for key, use := range p.tokens {
		if strings.Contains(string(use.answer.body), ">"+id+"<") {
			delete(p.tokens, key)
		}
	}
}

// filters reads Filter.N.Name and Filter.N.Value.M.
func (r *request) filters() map[string][]string {
	found := map[string][]string{}
	for i := 1; ; i++ {
		prefix := "Filter." + itoa(i)
		name := r.form.Get(prefix + ".Name")
		if name == "" {
			return found
		}
		found[name] = r.list(prefix + ".Value")
	}
}

// matchesAny reports whether value fits one of the patterns, with EC2's
// wildcards * and ?.
func matchesAny(patterns []string, value string) bool {
	for _, pattern := range patterns {
		quoted := regexp.QuoteMeta(pattern)
		quoted = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(quoted)
		if ok, err := regexp.MatchString("(?s)^"+quoted+"$", value); err == nil && ok {
			return true
		}
	}
	return false
}

// tagsMatch applies the filters tag:<key> and tag-key to a set of tags.
func tagsMatch(name string, values []string, tags map[string]string) bool {
	if name == "tag-key" {
		for key := range tags {
			if matchesAny(values, key) {
				return true
			}
		}
		return false
	}
	value, ok := tags[strings.TrimPrefix(name, "tag:")]
	return ok && matchesAny(values, value)
}

// tag is one tag on the wire.
type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// ask makes a further call and decodes its answer; a failed one leaves out as
// it is, which callers treat as "nothing there".
func (p *Proxy) ask(ctx context.Context, r *request, service, operation string, params url.Values, out any) {
	res := p.query(ctx, r, service, operation, params)
	if !res.ok() {
		p.log.Debug("a look-up in moto failed", "operation", operation, "code", res.code())
		return
	}
	if err := xml.Unmarshal(res.body, out); err != nil {
		p.log.Warn("moto's answer is unreadable", "operation", operation, "error", err)
	}
}

// filter builds the parameters of one EC2 filter.
func filter(name, value string) url.Values {
	return url.Values{"Filter.1.Name": {name}, "Filter.1.Value.1": {value}}
}
