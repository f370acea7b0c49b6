package aws

import (
	"context"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"
)

// fakeIAM has roles and OIDC providers. refusePrincipal is how many policies it
// still refuses for a principal that it does not know yet.
type fakeIAM struct {
	iamAPI
	lossy
	roles           map[string]*iamtypes.Role
	inline          map[string]string
	providers       map[string]*iam.GetOpenIDConnectProviderOutput
	refusePrincipal int
	// ARNs that are indexed although they are gone, and not although they are there.
	listedLate, unlisted []string
}

func newFakeIAM() *fakeIAM {
	return &fakeIAM{roles: map[string]*iamtypes.Role{}, inline: map[string]string{}, providers: map[string]*iam.GetOpenIDConnectProviderOutput{}}
}

func (f *fakeIAM) CreateRole(_ context.Context, in *iam.CreateRoleInput, _ ...func(*iam.Options)) (*iam.CreateRoleOutput, error) {
	if f.refusePrincipal > 0 {
		f.refusePrincipal--
		return nil, &smithy.GenericAPIError{Code: "MalformedPolicyDocument", Message: "Invalid principal in policy"}
	}
	if f.roles[*in.RoleName] != nil {
		return nil, apiErr("EntityAlreadyExists")
	}
	r := &iamtypes.Role{RoleName: in.RoleName, Arn: awssdk.String("arn:role/" + *in.RoleName), Tags: in.Tags, AssumeRolePolicyDocument: in.AssumeRolePolicyDocument}
	f.roles[*in.RoleName] = r
	return &iam.CreateRoleOutput{Role: r}, f.after("CreateRole")
}

func (f *fakeIAM) GetRole(_ context.Context, in *iam.GetRoleInput, _ ...func(*iam.Options)) (*iam.GetRoleOutput, error) {
	if r := f.roles[*in.RoleName]; r != nil {
		return &iam.GetRoleOutput{Role: r}, nil
	}
	return nil, apiErr("NoSuchEntity")
}

func (f *fakeIAM) UpdateAssumeRolePolicy(_ context.Context, in *iam.UpdateAssumeRolePolicyInput, _ ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error) {
	if err := f.unknown("UpdateAssumeRolePolicy", "NoSuchEntity"); err != nil {
		return nil, err
	}
	f.roles[*in.RoleName].AssumeRolePolicyDocument = in.PolicyDocument
	return &iam.UpdateAssumeRolePolicyOutput{}, f.after("UpdateAssumeRolePolicy")
}

func (f *fakeIAM) GetRolePolicy(_ context.Context, in *iam.GetRolePolicyInput, _ ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error) {
	if p, ok := f.inline[*in.RoleName]; ok {
		return &iam.GetRolePolicyOutput{PolicyDocument: &p}, nil
	}
	return nil, apiErr("NoSuchEntity")
}

func (f *fakeIAM) PutRolePolicy(_ context.Context, in *iam.PutRolePolicyInput, _ ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error) {
	if err := f.unknown("PutRolePolicy", "NoSuchEntity"); err != nil {
		return nil, err
	}
	f.inline[*in.RoleName] = *in.PolicyDocument
	return &iam.PutRolePolicyOutput{}, f.after("PutRolePolicy")
}

func (f *fakeIAM) CreateOpenIDConnectProvider(_ context.Context, in *iam.CreateOpenIDConnectProviderInput, _ ...func(*iam.Options)) (*iam.CreateOpenIDConnectProviderOutput, error) {
	arn := "arn:aws:iam::123456789012:oidc-provider/" + (*in.Url)[len("https://"):]
	if f.providers[arn] != nil {
		return nil, apiErr("EntityAlreadyExists")
	}
	f.providers[arn] = &iam.GetOpenIDConnectProviderOutput{ClientIDList: in.ClientIDList, Tags: in.Tags, Url: in.Url}
	return &iam.CreateOpenIDConnectProviderOutput{OpenIDConnectProviderArn: &arn}, f.after("CreateOpenIDConnectProvider")
}

func (f *fakeIAM) GetOpenIDConnectProvider(_ context.Context, in *iam.GetOpenIDConnectProviderInput, _ ...func(*iam.Options)) (*iam.GetOpenIDConnectProviderOutput, error) {
	if p := f.providers[*in.OpenIDConnectProviderArn]; p != nil {
		return p, nil
	}
	return nil, apiErr("NoSuchEntity")
}

func (f *fakeIAM) AddClientIDToOpenIDConnectProvider(_ context.Context, in *iam.AddClientIDToOpenIDConnectProviderInput, _ ...func(*iam.Options)) (*iam.AddClientIDToOpenIDConnectProviderOutput, error) {
	if err := f.unknown("AddClientIDToOpenIDConnectProvider", "NoSuchEntity"); err != nil {
		return nil, err
	}
	p := f.providers[*in.OpenIDConnectProviderArn]
	p.ClientIDList = append(p.ClientIDList, *in.ClientID)
	return &iam.AddClientIDToOpenIDConnectProviderOutput{}, f.after("AddClientIDToOpenIDConnectProvider")
}

func (f *fakeIAM) DeleteOpenIDConnectProvider(_ context.Context, in *iam.DeleteOpenIDConnectProviderInput, _ ...func(*iam.Options)) (*iam.DeleteOpenIDConnectProviderOutput, error) {
	delete(f.providers, *in.OpenIDConnectProviderArn) // IAM: absent is success
	return &iam.DeleteOpenIDConnectProviderOutput{}, f.after("DeleteOpenIDConnectProvider")
}
