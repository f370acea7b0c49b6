package aws

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// oidcAPI is what is called of IAM for OIDC providers.
type oidcAPI interface {
	CreateOpenIDConnectProvider(context.Context, *iam.CreateOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.CreateOpenIDConnectProviderOutput, error)
	GetOpenIDConnectProvider(context.Context, *iam.GetOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.GetOpenIDConnectProviderOutput, error)
	DeleteOpenIDConnectProvider(context.Context, *iam.DeleteOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.DeleteOpenIDConnectProviderOutput, error)
	AddClientIDToOpenIDConnectProvider(context.Context, *iam.AddClientIDToOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.AddClientIDToOpenIDConnectProviderOutput, error)
}

// oidc is the IAM OIDC provider of an owner, in one activity call. An account
// has at most one for an issuer, and its ARN follows from the issuer. The owner
// may have others, of an issuer that it had before: an issuer may name the
// Shoot's UID, and a Shoot that is made again has another.
type oidc struct {
	a   *Activities
	c   *clients
	iam oidcAPI
	in  contract.IssuerInput
	arn string // empty when the issuer is not known, or none that IAM accepts
}

func (a *Activities) oidc(ctx context.Context, in contract.IssuerInput) (*oidc, error) {
	if err := needIdentity(in.Owner); err != nil {
		return nil, err
	}
	c, err := a.clients(ctx, in.Account)
	if err != nil {
		return nil, err
	}
	o := &oidc{a: a, c: c, iam: c.iam, in: in}
	if issuer, secure := strings.CutPrefix(in.IssuerURL, "https://"); secure && issuer != "" {
		o.arn = fmt.Sprintf("arn:%s:iam::%s:oidc-provider/%s", c.partition(), c.identity.AccountID, issuer)
	}
	return o, nil
}

func (o *oidc) resource() string { return oidcName(o.arn) }

func oidcName(arn string) string {
	_, issuer, _ := strings.Cut(arn, ":oidc-provider/")
	return "IAM OIDC provider https://" + issuer
}

func (o *oidc) fault(err error) error { return faults.FromAWS(err, o.resource()) }

// EnsureOIDCProvider implements contract.AWS.EnsureIssuer. It gives IAM no
// thumbprint: IAM trusts issuers with a public certificate without one, and
// reads that of others itself. Providers of the owner for another issuer are of
// a Shoot that is no more; they go before the right one is made. They are looked
// for then only; Delete looks again.
func (a *Activities) EnsureOIDCProvider(ctx context.Context, in contract.IssuerInput) (contract.Outcome, error) {
	o, err := a.oidc(ctx, in)
	if err != nil {
		return contract.Outcome{}, err
	}
	if o.arn == "" {
		return contract.Outcome{}, faults.New(faults.Invalid, "IssuerURL", "IAM OIDC provider "+in.IssuerURL, "IAM accepts https:// issuers only")
	}
	have, err := o.get(ctx, o.arn)
	var note string
	if faults.Is(err, faults.Gone) {
		note = fmt.Sprintf("created IAM OIDC provider %s", in.IssuerURL)
		if err = o.removeAllBut(ctx, o.arn); err == nil {
			have, err = o.create(ctx)
		}
	}
	if err != nil {
		return contract.Outcome{}, err
	}
	if !slices.Contains(have.ClientIDList, audience) {
		err := a.steady(ctx, o.resource(), func() error {
			_, err := o.iam.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{
				OpenIDConnectProviderArn: &o.arn, ClientID: awssdk.String(audience),
			})
			return o.fault(err)
		})
		if err != nil {
			return contract.Outcome{}, err
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
		have, err = o.get(ctx, o.arn)
		return err == nil, err
	})
	return have, err
}

// get returns our provider, a Gone fault, or a Conflict when it is foreign.
func (o *oidc) get(ctx context.Context, arn string) (*iam.GetOpenIDConnectProviderOutput, error) {
	out, err := o.iam.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &arn})
	if err != nil {
		return nil, faults.FromAWS(err, oidcName(arn))
	}
	if identity := identityIn(out.Tags, iamTag); identity != o.in.Owner.ID {
		return nil, foreign(oidcName(arn), identity, o.in.Owner)
	}
	return out, nil
}

// DeleteOIDCProvider implements contract.AWS.DeleteIssuer. The provider of
// the issuer is looked at first: IAM may list one late that was just made.
func (a *Activities) DeleteOIDCProvider(ctx context.Context, in contract.IssuerInput) (contract.None, error) {
	o, err := a.oidc(ctx, in)
	if err != nil {
		return contract.None{}, err
	}
	if o.arn != "" {
		if err := o.remove(ctx, o.arn); err != nil {
			return contract.None{}, err
		}
	}
	return contract.None{}, o.removeAllBut(ctx, o.arn)
}

// removeAllBut removes every provider of the owner but one.
func (o *oidc) removeAllBut(ctx context.Context, keep string) error {
	ours, err := tagged(ctx, o.c.taggingGlobal, taggedOIDCProviders, o.in.Owner.ID)
	if err != nil {
		return err
	}
	for _, arn := range ours {
		if arn == keep {
			continue
		}
		if err := o.remove(ctx, arn); err != nil {
			return err
		}
	}
	return nil
}

// remove removes one provider if it is ours, and proves that it is gone.
func (o *oidc) remove(ctx context.Context, arn string) error {
	_, err := o.get(ctx, arn)
	switch {
	case faults.Is(err, faults.Gone):
		return nil
	case faults.Is(err, faults.Conflict):
		slog.WarnContext(ctx, "not deleted, since it is not ours", "resource", oidcName(arn), "owner", o.in.Owner.String())
		return nil
	case err != nil:
		return err
	}
	gone := ledger(o.c, typeOIDC, arn)
	gone.State = v1.ResourceDeleting
	err = audited.Change(ctx, gone, func() error {
		_, err := o.iam.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: &arn})
		return faults.IgnoreGone(faults.FromAWS(err, oidcName(arn)))
	})
	if err != nil {
		return err
	}
	return o.a.settle(ctx, oidcName(arn), "deleted", func() (bool, error) {
		_, err := o.get(ctx, arn)
		return goneAsDone(err)
	})
}
