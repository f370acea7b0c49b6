package updater

import (
	"cmp"
	"slices"
)

// Policy narrows the candidates for an update or a removal. It returns those that it prefers; none means that it has
// no opinion.
type Policy func(candidates []Instance) []Instance

// BasePolicies are those of every kind. Append a kind's own: later ones outrank earlier ones.
func BasePolicies() []Policy {
	return []Policy{PreferPriority, PreferUnready, PreferNotRunning}
}

// Choose asks the policies from the last to the first and returns the instance that remains, or of several the first
// by name. It tells false if there is no candidate.
func Choose(candidates []Instance, policies []Policy) (Instance, bool) {
	if len(candidates) == 0 {
		return Instance{}, false
	}
	for _, policy := range slices.Backward(policies) {
		if preferred := policy(candidates); len(preferred) > 0 {
			candidates = preferred
		}
	}
	return slices.MinFunc(candidates, func(a, b Instance) int { return cmp.Compare(a.Name, b.Name) }), true
}

// PreferPriority prefers the lowest Priority.
func PreferPriority(candidates []Instance) []Instance {
	first := LowestPriority
	for _, i := range candidates {
		first = min(first, i.Priority)
	}
	return those(candidates, func(i Instance) bool { return i.Priority == first })
}

// PreferUnready prefers instances that do not serve.
func PreferUnready(candidates []Instance) []Instance {
	return those(candidates, func(i Instance) bool { return !i.Ready })
}

// PreferNotRunning prefers instances that are known not to run.
func PreferNotRunning(candidates []Instance) []Instance {
	return those(candidates, func(i Instance) bool { return i.NotRunning })
}

// PreferFollowers prefers instances that are not leader.
func PreferFollowers(candidates []Instance) []Instance {
	return those(candidates, func(i Instance) bool { return !i.Leader })
}

// PreferNames returns a policy that prefers the named instances, for example those of topology's NextRemove.
func PreferNames(names []string) Policy {
	return func(candidates []Instance) []Instance {
		return those(candidates, func(i Instance) bool { return slices.Contains(names, i.Name) })
	}
}

func those(candidates []Instance, fit func(Instance) bool) []Instance {
	var out []Instance
	for _, i := range candidates {
		if fit(i) {
			out = append(out, i)
		}
	}
	return out
}
