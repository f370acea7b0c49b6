package shootrules

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

func good(t *testing.T, gcp bool) *shoot {
	t.Helper()
	s, err := builders.Shoot(networkPlan(gcp))
	require.NoError(t, err)
	return s
}

func requireFinding(t *testing.T, found []Finding, rule, path, value string) {
	t.Helper()
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == rule && f.Path == path })
	require.GreaterOrEqual(t, i, 0, "no finding of %s at %s in %v", rule, path, found)
	require.Equal(t, value, found[i].Value)
	for _, text := range []string{found[i].Says, found[i].WayOut} {
		require.Contains(t, found[i].String(), text)
		require.NotRegexp(t, `^$|[.;]$`, text, "the sentence is put together from parts")
	}
}

// Every rule has a Shoot that passes it and one that breaks it, and names
// field, value, rule and way out.
func TestRules(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range slices.Concat(shootCases, workerCases, awsCases, gcpCases) {
		covered[c.rule] = true
		t.Run(c.rule, func(t *testing.T) {
			project := "core"
			if c.project != "" {
				project = c.project
			}
			if c.pass != nil {
				s := good(t, c.gcp)
				c.pass(s)
				require.Empty(t, Check(s, "core"))
			}
			s := good(t, c.gcp)
			c.fail(s)
			requireFinding(t, Check(s, project), c.rule, c.path, c.value)
		})
	}
	for _, c := range updateCases {
		covered[c.rule] = covered[c.rule] || c.fail != nil
		t.Run(c.rule, func(t *testing.T) {
			change := func(f func(*shoot)) []Finding {
				old := good(t, c.gcp)
				if c.old != nil {
					c.old(old)
				}
				now := old.DeepCopy()
				if f != nil {
					f(now)
				}
				return CheckUpdate(old, now, "core")
			}
			require.Empty(t, change(nil), "no change is always right")
			if c.pass != nil {
				require.Empty(t, change(c.pass))
			}
			if c.fail != nil {
				requireFinding(t, change(c.fail), c.rule, c.path, c.value)
			}
		})
	}
	ids := Rules()
	for _, id := range ids {
		require.True(t, covered[id], "rule %s has no case", id)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), len(ids), "ids are unique")
	t.Logf("%d rules, %d cases", len(ids), len(shootCases)+len(workerCases)+len(awsCases)+len(gcpCases)+len(updateCases))
}

func TestGoodShoots(t *testing.T) {
	for _, gcp := range []bool{false, true} {
		s := good(t, gcp)
		require.Empty(t, Check(s, "core"))
		s.Finalizers = []string{"gardener"}
		require.Empty(t, CheckUpdate(s, s.DeepCopy(), "core"), "Gardener's finalizer is right on a Shoot that exists")
		require.NoError(t, Fault(s, nil))
	}
}

// Nothing at all must not panic, and is wrong in many ways.
func TestEmptyShoot(t *testing.T) {
	for _, provider := range []string{"", "aws", "gcp"} {
		s := &shoot{}
		s.Spec.Provider.Type = provider
		s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, good(t, false).Spec.Provider.Workers[0])
		s.Spec.Provider.Workers[0].Volume = nil
		require.Greater(t, len(Check(s, "")), 8)
		require.Greater(t, len(CheckUpdate(s, &shoot{}, "")), 8)
		require.Greater(t, len(CheckUpdate(&shoot{}, s, "")), 8)
	}
}

// All problems are told at once, on at most one page.
func TestFault(t *testing.T) {
	s := good(t, false)
	s.Spec.Region = ""
	err := Fault(s, Check(s, "core"))
	require.True(t, faults.Is(err, faults.Invalid))
	require.EqualError(t, err, "shoot garden-core/n-3f9ac21: spec.region (missing): is required; set Network.spec.region (InvalidShoot)")
	require.Equal(t, faults.OwnerUser, faults.As(err).Owner)

	s.Spec.Kubernetes.Version, s.Spec.Provider.Workers[0].Maximum = "1.20", 1
	err = Fault(s, Check(s, "core"))
	for _, part := range []string{"for 4 reasons", "(1) spec.region", `(2) spec.kubernetes.version "1.20"`, "(3) spec.provider.workers[0].maximum 1", "(4) spec.provider.workers[0].maximum 1"} {
		require.ErrorContains(t, err, part)
	}

	for range 60 {
		s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, s.Spec.Provider.Workers[0])
	}
	found := Check(s, "core")
	err = Fault(s, found)
	require.Greater(t, len(found), 60)
	require.Contains(t, err.Error(), "(30) ")
	require.NotContains(t, err.Error(), "(31) ")
	require.Contains(t, err.Error(), "and "+strings.TrimSpace(show(len(found)-30))+" more")
}

func TestValuesAreCut(t *testing.T) {
	require.Len(t, []rune(show(strings.Repeat("ü", 500))), 120)
	require.Equal(t, "", show(nil))
}
