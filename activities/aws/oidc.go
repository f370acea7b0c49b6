package aws

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// oidcAPI is what is called of IAM for OIDC providers.
type oidcAPI interface {
	CreateOpenIDConnectProvider(context.Context, *iam.CreateOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.CreateOpenIDConnectProviderOutput, error)
	GetOpenIDConnectProvider(context.Context, *iam.GetOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.GetOpenIDConnectProviderOutput, error)
	DeleteOpenIDConnectProvider(context.Context, *iam.DeleteOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.DeleteOpenIDConnectProviderOutput, error)
	AddClientIDToOpenIDConnectProvider(context.Context, *iam.AddClientIDToOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.AddClientIDToOpenIDConnectProviderOutput, error)
}

// oidc is the IAM OIDC provider of an issuer, in one activity call. An account
// has at most one for an issuer, and its ARN follows from the issuer.
type oidc struct {
	a   *Activities
	c   *clients
	iam oidcAPI
	in  contract.OIDCProviderInput
	arn string
}

func (a *Activities) oidc(ctx context.Context, in contract.OIDCProviderInput) (*oidc, error) {
	if err := needIdentity(in.Owner); err != nil {
		return nil, err
	}
	issuer, secure := strings.CutPrefix(in.IssuerURL, "https://")
	if !secure || issuer == "" {
		return nil, faults.New(faults.Invalid, "IssuerURL", "IAM OIDC provider "+in.IssuerURL, "IAM accepts https:// issuers only")
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	arn := fmt.Sprintf("arn:%s:iam::%s:oidc-provider/%s", c.partition(), c.identity.AccountID, issuer)
	return &oidc{a: a, c: c, iam: c.iam, in: in, arn: arn}, nil
}

func (o *oidc) resource() string { return "IAM OIDC provider " + o.in.IssuerURL }

func (o *oidc) fault(err error) error { return faults.FromAWS(err, o.resource()) }

// EnsureOIDCProvider implements contract.EnsureOIDCProvider. It gives IAM no
// thumbprint: IAM trusts issuers with a public certificate without one, and
// reads that of others itself.
func (a *Activities) EnsureOIDCProvider(ctx context.Context, in contract.OIDCProviderInput) (contract.Outcome, error) {
	o, err := a.oidc(ctx, in)
	if err != nil {
		return contract.Outcome{}, err
	}
	have, err := o.get(ctx)
	var note string
	if faults.Is(err, faults.Gone) {
		note = fmt.Sprintf("created IAM OIDC provider %s", in.IssuerURL)
		have, err = o.create(ctx)
	}
	if err != nil {
		return contract.Outcome{}, err
	}
	if !slices.Contains(have.ClientIDList, audience) {
		client := audience
		_, err := o.iam.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{
			OpenIDConnectProviderArn: &o.arn, ClientID: &client,
		})
		if err != nil {
			return contract.Outcome{}, o.fault(err)
		}
	}
	return contract.Outcome{Resource: ledger(o.c, typeOIDC, o.arn), Note: note}, nil
}

func (o *oidc) create(ctx context.Context) (have *iam.GetOpenIDConnectProviderOutput, err error) {
	_, err = o.iam.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
		Url:          &o.in.IssuerURL,
		ClientIDList: []string{audience},
		Tags:         tagsAs(identityTags(o.in.Owner, o.in.Env), func(k, v *string) iamtypes.Tag { return iamtypes.Tag{Key: k, Value: v} }),
	})
	// One that exists by an earlier call is told from a foreign one by get.
	if f := faults.As(o.fault(err)); err != nil && (f == nil || f.Code != "EntityAlreadyExists") {
		return nil, o.fault(err)
	}
	err = o.a.settle(ctx, o.resource(), "created", func() (done bool, err error) {
		have, err = o.get(ctx)
		return err == nil, err
	})
	return have, err
}

// get returns our provider, a Gone fault, or a Conflict when it is foreign.
func (o *oidc) get(ctx context.Context) (*iam.GetOpenIDConnectProviderOutput, error) {
	out, err := o.iam.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &o.arn})
	if err != nil {
		return nil, o.fault(err)
	}
	if identity := identityIn(out.Tags, iamTag); identity != o.in.Owner.ID {
		return nil, foreign(o.resource(), identity, o.in.Owner)
	}
	return out, nil
}

// DeleteOIDCProvider implements contract.DeleteOIDCProvider.
func (a *Activities) DeleteOIDCProvider(ctx context.Context, in contract.OIDCProviderInput) (contract.None, error) {
	o, err := a.oidc(ctx, in)
	if err != nil {
		return contract.None{}, err
	}
	_, err = o.get(ctx)
	switch {
	case faults.Is(err, faults.Gone):
		return contract.None{}, nil
	case faults.Is(err, faults.Conflict):
		slog.WarnContext(ctx, "not deleted, since it is not ours", "resource", o.resource(), "owner", in.Owner.String())
		return contract.None{}, nil
	case err != nil:
		return contract.None{}, err
	}
	_, err = o.iam.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: &o.arn})
	if err := faults.IgnoreGone(o.fault(err)); err != nil {
		return contract.None{}, err
	}
	return contract.None{}, a.settle(ctx, o.resource(), "deleted", func() (bool, error) {
		_, err := o.get(ctx)
		return goneAsDone(err)
	})
}
