package invariants

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// network is one that is Ready for generation 2, changed.
func network(change func(*v1.Network)) *v1.Network {
	n := &v1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "n1", UID: "u1", Generation: 2,
		Annotations: map[string]string{v1.AnnotationID: "0123456789abcdef"}, Finalizers: []string{v1.Finalizer("Network")}}}
	n.Status.ObservedGeneration, n.Status.Phase = 2, v1.PhaseNormal
	n.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	n.Status.Operation = &v1.OperationStatus{ID: "o", Generation: 2, State: v1.OperationRunning, Progress: 50}
	if change != nil {
		change(n)
	}
	return n
}

func TestCompare(t *testing.T) {
	ready := func(n *v1.Network) *metav1.Condition { return &n.Status.Conditions[0] }
	for name, tc := range map[string]struct {
		before, now func(*v1.Network)
		want        string // number of the invariant, or empty
	}{
		"nothing changes":           {},
		"a new generation is asked": {now: func(n *v1.Network) { n.Generation = 3 }},
		"Ready for another generation than is observed": {
			now: func(n *v1.Network) { ready(n).ObservedGeneration = 1 }, want: "5:",
		},
		"Ready comes after the spec has changed": {
			before: func(n *v1.Network) { n.Generation = 3; ready(n).Status = metav1.ConditionFalse },
			now:    func(n *v1.Network) { n.Generation = 3 }, want: "5:",
		},
		"an observed generation that never was": {
			now: func(n *v1.Network) { n.Status.ObservedGeneration, ready(n).ObservedGeneration = 3, 3 }, want: "5:",
		},
		"observedGeneration goes back": {
			now: func(n *v1.Network) { n.Status.ObservedGeneration, ready(n).ObservedGeneration = 1, 1 }, want: "12:",
		},
		"progress goes back": {
			now: func(n *v1.Network) { n.Status.Operation.Progress = 40 }, want: "12:",
		},
		"it makes progress and stalls": {
			now: func(n *v1.Network) {
				n.Status.Conditions = append(n.Status.Conditions, metav1.Condition{Type: v1.ConditionProgressing, Status: metav1.ConditionTrue},
					metav1.Condition{Type: v1.ConditionStalled, Status: metav1.ConditionTrue})
			}, want: "5:",
		},
		"it stalls": {
			now: func(n *v1.Network) {
				n.Status.Conditions = append(n.Status.Conditions, metav1.Condition{Type: v1.ConditionProgressing, Status: metav1.ConditionFalse},
					metav1.Condition{Type: v1.ConditionStalled, Status: metav1.ConditionTrue})
			},
		},
		"an operation with a lower number": {
			before: func(n *v1.Network) { n.Status.Operation.ID = "network/infra/n1/update/2.2" },
			now:    func(n *v1.Network) { n.Status.Operation.ID = "network/infra/n1/update/2.1" }, want: "12:",
		},
		"another operation starts at nought": {
			now: func(n *v1.Network) { n.Status.Operation.ID, n.Status.Operation.Progress = "p", 0 },
		},
		"an operation that has ended runs again": {
			before: func(n *v1.Network) { n.Status.Operation.State = v1.OperationSucceeded }, want: "6:",
		},
		"a phase that cannot follow": {
			now: func(n *v1.Network) { n.Status.Phase = v1.PhaseCreating }, want: "6:",
		},
		"a creation that had failed for good is well": {
			before: func(n *v1.Network) { n.Status.Phase = v1.PhaseFailed }, want: "6:",
		},
		"a creation that had stalled is done at once": {
			before: func(n *v1.Network) { n.Status.Phase = v1.PhaseFailed },
			now: func(n *v1.Network) {
				n.Status.Operation.Type, n.Status.Operation.State, n.Status.Operation.Attempts = "Create", v1.OperationSucceeded, 2
			},
		},
		"anything may be deleted": {
			before: func(n *v1.Network) { n.Status.Phase = v1.PhaseFailed },
			now:    func(n *v1.Network) { n.Status.Phase = v1.PhaseDeleting },
		},
		"a deletion is not taken back": {
			before: func(n *v1.Network) { n.Status.Phase = v1.PhaseDeleting }, want: "6:",
		},
		"the identity changes": {
			now: func(n *v1.Network) { n.Annotations[v1.AnnotationID] = "fedcba9876543210" }, want: "1:",
		},
		"another object of that name": {
			now: func(n *v1.Network) {
				n.UID, n.Generation, n.Status = "u2", 1, v1.NetworkStatus{}
				n.Annotations[v1.AnnotationID] = "fedcba9876543210"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, now := network(tc.before), network(tc.now)
			bad := compare(KeyOf(now), before, now)
			if tc.want == "" {
				require.Empty(t, bad)
				return
			}
			require.NotEmpty(t, bad)
			require.Contains(t, strings.Join(bad, "\n"), tc.want)
		})
	}
}

func checkerWith(violated *[]string) *Checker {
	return &Checker{opts: Options{Marker: "MARKER", Violated: func(s string) { *violated = append(*violated, s) }},
		told: map[string]bool{}, retained: map[string]map[string]bool{"0123456789abcdef": {"kept": true}}, latest: map[Key]v1.Object{},
		shoots: map[string]bool{"shoot--core--n1": true}, identities: map[string]bool{"0123456789abcdef": true}}
}

func TestCloud(t *testing.T) {
	const id = "0123456789abcdef"
	alive := owners{objects: map[string]v1.Object{id: network(nil)}, shoots: map[string]bool{"shoot--core--n1": true}}
	free := owners{objects: map[string]v1.Object{id: network(func(n *v1.Network) { n.Finalizers = nil })}}
	for name, tc := range map[string]struct {
		all           []stack.Resource
		before, after owners
		want          string
	}{
		"owned":                               {all: []stack.Resource{{Type: "s3/bucket", ID: "b", Owner: id}}, before: alive, after: alive},
		"its owner came meanwhile":            {all: []stack.Resource{{Type: "s3/bucket", ID: "b", Owner: id}}, after: alive},
		"its owner went meanwhile":            {all: []stack.Resource{{Type: "s3/bucket", ID: "b", Owner: id}}, before: alive},
		"its owner is gone":                   {all: []stack.Resource{{Type: "s3/bucket", ID: "b", Owner: id}}, want: "3:"},
		"its owner is gone and kept it":       {all: []stack.Resource{{Type: "s3/bucket", ID: "kept", Owner: id}}},
		"a key on its way out":                {all: []stack.Resource{{Type: "kms/key", ID: "k", Owner: id, State: "PendingDeletion"}}},
		"its Shoot is gone":                   {all: []stack.Resource{{Type: "ec2/vpc", ID: "v", Cluster: "shoot--core--n1"}}, want: "3:"},
		"a bucket of no object that ever was": {all: []stack.Resource{{Type: "s3/bucket", ID: "b", Owner: "ffffffffffffffff"}}},
		"a VPC of no Shoot that ever was":     {all: []stack.Resource{{Type: "ec2/vpc", ID: "v", Cluster: "shoot--core--other"}}},
		"its Shoot lives":                     {all: []stack.Resource{{Type: "ec2/vpc", ID: "v", Cluster: "shoot--core--n1"}}, before: alive, after: alive},
		"its owner could go at any time":      {all: []stack.Resource{{Type: "s3/bucket", ID: "b", Owner: id}}, before: free, after: free, want: "2:"},
		"two buckets":                         {all: []stack.Resource{{Type: "s3/bucket", ID: "b", Owner: id}, {Type: "s3/bucket", ID: "c", Owner: id}}, before: alive, after: alive, want: "1:"},
		"two keys, one on its way out":        {all: []stack.Resource{{Type: "kms/key", ID: "k", Owner: id, State: "PendingDeletion"}, {Type: "kms/key", ID: "l", Owner: id}}, before: alive, after: alive},
		"two VPCs of one Shoot":               {all: []stack.Resource{{Type: "ec2/vpc", ID: "v", Cluster: "shoot--core--n1"}, {Type: "ec2/vpc", ID: "w", Cluster: "shoot--core--n1"}}, before: alive, after: alive, want: "1:"},
		"two subnets of one Shoot":            {all: []stack.Resource{{Type: "ec2/subnet", ID: "v", Cluster: "shoot--core--n1"}, {Type: "ec2/subnet", ID: "w", Cluster: "shoot--core--n1"}}, before: alive, after: alive},
	} {
		t.Run(name, func(t *testing.T) {
			var violated []string
			c := checkerWith(&violated)
			c.nothingTwice(tc.all)
			for _, r := range tc.all {
				c.owned(r, tc.before, tc.after)
			}
			requireViolation(t, tc.want, violated)
		})
	}
}

func requireViolation(t *testing.T, want string, have []string) {
	t.Helper()
	if want == "" {
		require.Empty(t, have)
		return
	}
	require.Len(t, have, 1)
	require.True(t, strings.HasPrefix(have[0], want), have[0])
}

func TestReadyIsTrue(t *testing.T) {
	const id = "0123456789abcdef"
	ready := owners{objects: map[string]v1.Object{id: network(func(n *v1.Network) {
		n.Status.Resources = []v1.Resource{{Key: "bucket", Type: "S3::Bucket", ID: "b", State: v1.ResourcePresent}}
	})}}
	var violated []string
	c := checkerWith(&violated)
	c.readyIsTrue(ready, ready, []stack.Resource{{Type: "s3/bucket", ID: "b"}})
	require.Empty(t, violated)
	c.readyIsTrue(ready, ready, nil)
	requireViolation(t, "5:", violated)
}

func TestUsedShoots(t *testing.T) {
	n := network(func(n *v1.Network) { n.Status.Shoot = &v1.NetworkShootStatus{Namespace: "garden-core", Name: "n1"} })
	c := &v1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "c1", Finalizers: []string{v1.Finalizer("Cluster")}}}
	c.Spec.Network = "n1"
	both, alone := map[string]v1.Object{"n": n, "c": c}, map[string]v1.Object{"n": n}
	going := map[string]bool{"garden-core/n1": true}
	for name, tc := range map[string]struct {
		before, after owners
		want          string
	}{
		"its Shoot goes":       {owners{objects: both, deleting: going}, owners{objects: both}, "4:"},
		"its Shoot stays":      {owners{objects: both}, owners{objects: both}, ""},
		"it went meanwhile":    {owners{objects: both, deleting: going}, owners{objects: alone}, ""},
		"nobody is on it":      {owners{objects: alone, deleting: going}, owners{objects: alone}, ""},
		"another's Shoot goes": {owners{objects: both, deleting: map[string]bool{"garden-core/n2": true}}, owners{objects: both}, ""},
	} {
		t.Run(name, func(t *testing.T) { requireViolation(t, tc.want, usedShoots(tc.before, tc.after)) })
	}
}

func TestNoSecret(t *testing.T) {
	var violated []string
	c := checkerWith(&violated)
	c.NoSecret("a log", []byte("nothing here"))
	require.Empty(t, violated)
	c.NoSecret("a log", []byte("key=AKIAMARKER"))
	requireViolation(t, "10:", violated)
}
