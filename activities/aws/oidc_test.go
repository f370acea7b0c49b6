package aws

import (
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// issuers of one Network: of its Shoot, and of one that it had before.
const (
	issuerNow  = "https://i.example.com/projects/core/shoots/uid-2/issuer"
	issuerOnce = "https://i.example.com/projects/core/shoots/uid-1/issuer"
)

func arnOf(issuer string) string {
	return "arn:aws:iam::123456789012:oidc-provider/" + issuer[len("https://"):]
}

func oidcInput(issuer string) contract.IssuerInput {
	return contract.IssuerInput{Account: fakeAccount, Owner: fakeOwner, Env: "test", IssuerURL: issuer}
}

// others puts providers there that are not ours: of another identity, and of
// nobody that we know.
func others(t *testing.T, f *fakeIAM, a *Activities) []string {
	t.Helper()
	stranger := oidcInput("https://i.example.com/projects/core/shoots/uid-9/issuer")
	stranger.Owner.ID = "ffffffffffffffff"
	_, err := a.EnsureOIDCProvider(t.Context(), stranger)
	require.NoError(t, err)
	plain := arnOf("https://token.actions.example.com")
	f.providers[plain] = &iam.GetOpenIDConnectProviderOutput{}
	return []string{arnOf(stranger.IssuerURL), plain}
}

func (f *fakeIAM) left() []string { return slices.Sorted(maps.Keys(f.providers)) }

func TestOIDCProviderOfAFormerShootIsRemoved(t *testing.T) {
	f := newFakeIAM()
	a := fakeActivities(t, func(c *clients) { c.iam = f })
	foreign := others(t, f, a)
	_, err := a.EnsureOIDCProvider(t.Context(), oidcInput(issuerOnce))
	require.NoError(t, err)

	f.calls = nil
	f.listedLate = []string{arnOf("https://i.example.com/gone")}
	out := adopts(t, &f.lossy, a.EnsureOIDCProvider, oidcInput(issuerNow), "DeleteOpenIDConnectProvider", "CreateOpenIDConnectProvider")
	require.Equal(t, arnOf(issuerNow), out.Resource.ID)
	require.ElementsMatch(t, append(foreign, arnOf(issuerNow)), f.left())
}

// The outdated one goes before the right one is made: where that is cut short,
// the right one is still missing, so the next attempt looks again. A foreign one
// in its place stops both.
func TestAnOutdatedOIDCProviderGoesFirst(t *testing.T) {
	f := newFakeIAM()
	a := fakeActivities(t, func(c *clients) { c.iam = f })
	_, err := a.EnsureOIDCProvider(t.Context(), oidcInput(issuerOnce))
	require.NoError(t, err)
	f.providers[arnOf(issuerNow)] = &iam.GetOpenIDConnectProviderOutput{}
	f.calls = nil
	_, err = a.EnsureOIDCProvider(t.Context(), oidcInput(issuerNow))
	requireConflict(t, err)
	require.Empty(t, f.calls)
	delete(f.providers, arnOf(issuerNow))

	_, err = a.EnsureOIDCProvider(t.Context(), oidcInput(issuerNow))
	require.NoError(t, err)
	require.Equal(t, []string{"DeleteOpenIDConnectProvider", "CreateOpenIDConnectProvider"}, f.calls)
	_, err = a.EnsureOIDCProvider(t.Context(), oidcInput(""))
	require.True(t, faults.Is(err, faults.Invalid), err)
	require.Equal(t, []string{arnOf(issuerNow)}, f.left())
}

func TestOIDCProvidersAreDeletedByIdentity(t *testing.T) {
	for name, in := range map[string]contract.IssuerInput{
		"issuer known": oidcInput(issuerNow), "issuer empty": oidcInput(""), "issuer of a third": oidcInput("https://i.example.com/x"),
		"no issuer that IAM takes": oidcInput("http://i.example.com"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeIAM()
			a := fakeActivities(t, func(c *clients) { c.iam = f })
			foreign := others(t, f, a)
			_, err := a.EnsureOIDCProvider(t.Context(), oidcInput(issuerOnce))
			require.NoError(t, err)
			f.providers[arnOf(issuerNow)] = f.providers[arnOf(issuerOnce)]
			for range 2 { // a lost answer for each
				f.lose = "DeleteOpenIDConnectProvider"
				_, err = a.DeleteOIDCProvider(t.Context(), in)
				require.True(t, faults.Is(err, faults.Transient), err)
			}
			f.calls = nil
			_, err = a.DeleteOIDCProvider(t.Context(), in)
			require.NoError(t, err)
			require.Empty(t, f.calls)
			require.ElementsMatch(t, foreign, f.left())
		})
	}
}

// IAM lists late: the one that is expected is looked at by its name.
func TestOIDCProviderIsDeletedBeforeItIsListed(t *testing.T) {
	f := newFakeIAM()
	a := fakeActivities(t, func(c *clients) { c.iam = f })
	_, err := a.EnsureOIDCProvider(t.Context(), oidcInput(issuerNow))
	require.NoError(t, err)
	f.unlisted = f.left()
	_, err = a.DeleteOIDCProvider(t.Context(), oidcInput(issuerNow))
	require.NoError(t, err)
	require.Empty(t, f.left())

	_, err = a.DeleteOIDCProvider(t.Context(), contract.IssuerInput{Account: fakeAccount})
	require.True(t, faults.Is(err, faults.Invalid), "no identity: everything would look ours")
}

func TestOIDCProviderInTheWayIsLeftAlone(t *testing.T) {
	f := newFakeIAM()
	a := fakeActivities(t, func(c *clients) { c.iam = f })
	f.providers[arnOf(issuerNow)] = &iam.GetOpenIDConnectProviderOutput{}
	_, err := a.DeleteOIDCProvider(t.Context(), oidcInput(issuerNow))
	require.NoError(t, err)
	require.Equal(t, []string{arnOf(issuerNow)}, f.left())
}
