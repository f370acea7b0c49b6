package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// marker stands in every credential and must be seen nowhere else.
const marker = "MARKERf00dfeed"

func network() *v1.Network           { return &v1.Network{ObjectMeta: named("n1")} }
func cluster() *v1.Cluster           { return &v1.Cluster{ObjectMeta: named("c1")} }
func provider() *v1.Provider         { return &v1.Provider{ObjectMeta: named("core-aws")} }
func providerType() *v1.ProviderType { return &v1.ProviderType{ObjectMeta: named("aws-gardener")} }

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// TestLifecycle is the main job: the samples up, unchanged, and down again,
// with the worker killed in the middle of every operation.
func TestLifecycle(t *testing.T) {
	loseAnswers(t)
	samples, err := stack.MarkedSamples(marker)
	require.NoError(t, err)
	require.NoError(t, world.Apply(within(t, time.Minute), samples...))
	t.Run("Create", create)
	t.Run("AnswersWereLost", answersWereLost)
	t.Run("NothingTwice", nothingTwice)
	t.Run("NoOp", noOp)
	t.Run("Temporal", temporalShowsIt)
	t.Run("Events", eventsTellIt)
	t.Run("OnCall", onCall)
	t.Run("Delete", deleteAll)
	t.Run("NothingLeft", nothingLeft)
	t.Run("NoSecretAnywhere", noSecretAnywhere)
}

// creates are the calls that make something in AWS.
var creates = []string{
	"CreateBucket", "CreateOpenIDConnectProvider", "CreateHostedZone", "CreateKey", "CreateAlias", "CreateRole",
	"CreateVpcEndpointServiceConfiguration",
}

// loseAnswers makes the first of each creating call take effect and then lose
// its answer: the next attempt must find what the first has made.
func loseAnswers(t *testing.T) {
	t.Helper()
	for _, operation := range creates {
		_, err := world.AddFault(within(t, time.Minute), stack.Fault{Target: "aws", Kind: "lost-answer", Operation: operation, Count: 1})
		require.NoError(t, err)
	}
}

func answersWereLost(t *testing.T) {
	for _, operation := range creates {
		calls, err := world.Calls(within(t, time.Minute), operation)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(calls, func(c stack.Call) bool { return c.Lost }), "%s: no answer was lost in %+v", operation, calls)
	}
}

func create(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	// The wait says what it waits for; then its worker dies.
	follow(ctx, t, network(), &v1.NetworkList{}, func(o v1.Object) bool {
		return atStep("WaitShootReady")(o) && strings.Contains(o.Common().Operation.WaitingFor, "shoot garden-core/")
	})
	killWorker(ctx, t, "CreateNetwork")
	seen := follow(ctx, t, network(), &v1.NetworkList{}, isReady)
	require.Equal(t, []v1.Phase{v1.PhaseCreating, v1.PhaseNormal}, seen.phases)
	require.Contains(t, seen.steps, "BootstrapShoot")

	follow(ctx, t, cluster(), &v1.ClusterList{}, atStep("WaitDatabaseReady"))
	killWorker(ctx, t, "CreateCluster")
	seen = follow(ctx, t, cluster(), &v1.ClusterList{}, isReady)
	require.Equal(t, v1.PhaseAvailable, seen.phases[len(seen.phases)-1])

	c := cluster()
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(c), c))
	require.NotNil(t, c.Status.Endpoints)
	require.NotEmpty(t, c.Status.Endpoints.Private.ServiceName)
	require.NotEmpty(t, c.Status.Endpoints.Private.Host)
	require.EqualValues(t, 3, c.Status.Observed.TiKV.Ready)
}

// killWorker kills the worker with SIGKILL and starts another one.
func killWorker(ctx context.Context, t *testing.T, during string) {
	t.Helper()
	require.NoError(t, world.Kill(ctx, "worker"), "during %s", during)
}

// nothingTwice lists the emulator: one of each for each identity.
func nothingTwice(t *testing.T) {
	ctx := within(t, time.Minute)
	all, err := world.Inventory(ctx)
	require.NoError(t, err)
	count := map[string]int{}
	for _, r := range all {
		if r.Owner != "" {
			count[ownerName(ctx, t, r.Owner)+" "+invariants.Once(r)]++
		}
	}
	want := []string{
		"Network/n1 s3/bucket", "Network/n1 iam/oidc-provider", "Network/n1 route53/hosted-zone",
		"Cluster/c1 kms/key", "Cluster/c1 iam/role", "Cluster/c1 ec2/vpc-endpoint-service",
	}
	for _, w := range want {
		require.Equal(t, 1, count[w], "%s in %v", w, count)
	}
	for k, n := range count {
		require.Equal(t, 1, n, "%s exists %d times", k, n)
	}
}

// ownerName finds the object with an identity.
func ownerName(ctx context.Context, t *testing.T, id string) string {
	t.Helper()
	n, c := network(), cluster()
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(n), n))
	require.NoError(t, world.Kube.Get(ctx, client.ObjectKeyFromObject(c), c))
	switch id {
	case n.Annotations[v1.AnnotationID]:
		return "Network/n1"
	case c.Annotations[v1.AnnotationID]:
		return "Cluster/c1"
	}
	return "unknown " + id
}

// noOp changes nothing of substance: an Update operation runs, and the world
// stays as it is.
func noOp(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	before, err := world.Inventory(ctx)
	require.NoError(t, err)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"displayName":"orders-renamed"}}`))
	require.NoError(t, world.Kube.Patch(ctx, cluster(), patch))
	seen := follow(ctx, t, cluster(), &v1.ClusterList{}, func(o v1.Object) bool { return o.GetGeneration() == 2 && isReady(o) })
	require.Contains(t, seen.phases, v1.PhaseModifying)
	patch = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"bucket":{"retain":true}}}`))
	require.NoError(t, world.Kube.Patch(ctx, network(), patch))
	follow(ctx, t, network(), &v1.NetworkList{}, func(o v1.Object) bool { return o.GetGeneration() == 2 && isReady(o) })
	patch = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dns":{"parentZoneID":"Z0123456789ABCDEFGHIJ"}}}`))
	require.NoError(t, world.Kube.Patch(ctx, provider(), patch))
	follow(ctx, t, provider(), &v1.ProviderList{}, func(o v1.Object) bool { return o.GetGeneration() == 2 && isReady(o) })
	patch = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"timeouts":{"wake":"31m"}}}`))
	require.NoError(t, world.Kube.Patch(ctx, providerType(), patch))
	follow(ctx, t, providerType(), &v1.ProviderTypeList{}, func(o v1.Object) bool { return o.GetGeneration() == 2 && isReady(o) })
	after, err := world.Inventory(ctx)
	require.NoError(t, err)
	require.Equal(t, ids(before), ids(after))
}

func ids(rs []stack.Resource) (out []string) {
	for _, r := range rs {
		out = append(out, r.Type+" "+r.ID)
	}
	slices.Sort(out)
	return out
}

func eventsTellIt(t *testing.T) {
	var list corev1.EventList
	require.NoError(t, world.Kube.List(within(t, time.Minute), &list, client.InNamespace(namespace)))
	have := map[string]bool{}
	for _, e := range list.Items {
		have[e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name+" "+e.Reason] = true
	}
	for _, want := range []string{"Network/n1 CreateStarted", "Network/n1 WaitShootReady", "Network/n1 CreateSucceeded", "Cluster/c1 CreateSucceeded", "Cluster/c1 UpdateSucceeded"} {
		require.True(t, have[want], "event %s is missing in %v", want, have)
	}
}

func deleteAll(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	// The Network first, as a careless user does: it waits for its Cluster.
	require.NoError(t, world.Kube.Delete(ctx, network()))
	follow(ctx, t, network(), &v1.NetworkList{}, func(o v1.Object) bool {
		return slices.ContainsFunc(o.Common().Conditions, func(c metav1.Condition) bool {
			return c.Type == v1.ConditionDeletionBlocked && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "c1")
		})
	})
	require.NoError(t, world.Kube.Delete(ctx, cluster()))
	follow(ctx, t, cluster(), &v1.ClusterList{}, atStep("DeleteDatabase"))
	killWorker(ctx, t, "DeleteCluster")
	follow(ctx, t, cluster(), &v1.ClusterList{}, nil)

	follow(ctx, t, network(), &v1.NetworkList{}, atStep("WaitShootGone"))
	killWorker(ctx, t, "DeleteNetwork")
	follow(ctx, t, network(), &v1.NetworkList{}, nil)
	for _, o := range []v1.Object{provider(), providerType()} {
		require.NoError(t, world.Kube.Delete(ctx, o))
		eventually(t, time.Minute, o.GetName()+" goes", func() error {
			err := world.Kube.Get(ctx, client.ObjectKeyFromObject(o), o)
			if client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("still there: %v, %s", err, describe(o))
			}
			return nil
		})
	}
}

// nothingLeft lists the emulator, the garden and Temporal.
func nothingLeft(t *testing.T) {
	ctx := within(t, time.Minute)
	all, err := world.Inventory(ctx)
	require.NoError(t, err)
	for _, r := range all {
		if r.Type == "kms/key" && r.State == "PendingDeletion" {
			continue // 30 days, as AWS does it
		}
		t.Errorf("left in AWS: %s %s (owner %s, cluster %s, state %s)", r.Type, r.ID, r.Owner, r.Cluster, r.State)
	}
	for _, kind := range []string{"ShootList", "CredentialsBindingList"} {
		shoots := &unstructured.UnstructuredList{}
		shoots.SetAPIVersion(map[string]string{"ShootList": "core.gardener.cloud/v1beta1", "CredentialsBindingList": "security.gardener.cloud/v1alpha1"}[kind])
		shoots.SetKind(kind)
		require.NoError(t, world.Kube.List(ctx, shoots))
		require.Empty(t, shoots.Items, kind)
	}
	eventually(t, 30*time.Second, "no workflow runs", func() error {
		running, err := world.Workflows(ctx, `ExecutionStatus = "Running"`)
		if err == nil && len(running) > 0 {
			err = fmt.Errorf("%d run: %s", len(running), running[0].GetExecution().GetWorkflowId())
		}
		return err
	})
}
