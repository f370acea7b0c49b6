package gardenlet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/dev/garden"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

// TestMain lets this binary be the gardener-apiserver, as devstack is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == garden.Command {
		garden.Main(os.Args[2:])
	}
	os.Exit(m.Run())
}

// fakeCloud remembers what exists and fails on demand.
type fakeCloud struct {
	mu      sync.Mutex
	exists  map[string]bool
	nextErr error
}

func (c *fakeCloud) Reconcile(_ context.Context, _ *gardencorev1beta1.Shoot, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exists[id] = true
	return c.fail()
}

// fail returns the error that was asked for, once.
func (c *fakeCloud) fail() error {
	err := c.nextErr
	c.nextErr = nil
	if err != nil {
		return fmt.Errorf("VPC: %w", err)
	}
	return nil
}

func (c *fakeCloud) failNext(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextErr = err
}

func (c *fakeCloud) Delete(_ context.Context, _ *gardencorev1beta1.Shoot, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fail(); err != nil {
		return err
	}
	delete(c.exists, id)
	return nil
}

func (c *fakeCloud) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exists[id]
}

// stack is a management cluster with garden and gardenlet.
type stack struct {
	t       *testing.T
	dir     string
	etcd    *kube.Etcd
	cluster *kube.Cluster
	garden  *garden.Garden
	let     *gardenlet.Gardenlet
	cloud   *fakeCloud
	client  client.Client
	addons  chan gardenlet.ShootInfo
}

func (s *stack) start(ctx context.Context) {
	s.t.Helper()
	begin := time.Now()
	var err error
	s.etcd, err = kube.StartEtcd(filepath.Join(s.dir, "etcd"), "")
	check(s.t, err)
	s.cluster, err = kube.Start(ctx, kube.Options{Name: "management", Dir: filepath.Join(s.dir, "management"), Etcd: s.etcd})
	check(s.t, err)
	s.t.Logf("management cluster after %s", time.Since(begin))
	s.garden, err = garden.Start(ctx, garden.Options{
		Cluster: s.cluster, Etcd: s.etcd, Dir: filepath.Join(s.dir, "garden"), Log: filepath.Join(s.dir, "garden.log"),
	})
	check(s.t, err)
	s.t.Logf("garden after %s", time.Since(begin))
	s.let, err = gardenlet.Start(ctx, gardenlet.Options{
		Garden: s.cluster.Config(), Etcd: s.etcd, Dir: filepath.Join(s.dir, "shoots"),
		SeedName: garden.SeedName, ClusterIdentity: garden.ClusterIdentity, Infrastructure: s.cloud,
		Pace: gardenlet.Pace{Factor: 0.3},
		Addons: []gardenlet.ShootAddon{func(ctx context.Context, info gardenlet.ShootInfo) error {
			s.addons <- info
			<-ctx.Done()
			return nil
		}},
		Log: logr.Discard(),
	})
	check(s.t, err)
	s.client = newClient(s.t, s.cluster.Config())
	s.t.Logf("all after %s", time.Since(begin))
}

func (s *stack) stop() {
	begin := time.Now()
	if s.let != nil {
		if err := s.let.Stop(); err != nil {
			s.t.Errorf("stop gardenlet: %v", err)
		}
	}
	s.garden.Child().Kill() // asked to stop, it waits for its aggregator's watches
	if err := s.cluster.Stop(); err != nil {
		s.t.Errorf("stop management cluster: %v", err)
	}
	s.etcd.Close()
	s.t.Logf("stopped in %s", time.Since(begin))
}

func (s *stack) shoot(ctx context.Context) *gardencorev1beta1.Shoot {
	s.t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	check(s.t, s.client.Get(ctx, client.ObjectKey{Namespace: garden.ProjectNamespace, Name: "n1"}, shoot))
	return shoot
}

// TestShootLifecycle takes one Shoot through its life: refused by quota, retried, ready,
// used, restarted, hibernated, woken up, deleted.
func TestShootLifecycle(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir := t.TempDir()
	logs, err := os.Create(filepath.Join(dir, "kube.log"))
	check(t, err)
	kube.LogTo(logs)
	s := &stack{t: t, dir: dir, cloud: &fakeCloud{exists: map[string]bool{}}, addons: make(chan gardenlet.ShootInfo, 10)}
	s.start(ctx)
	defer func() { s.stop() }()

	s.cloud.failNext(&gardenlet.InfraError{Code: "ERR_INFRA_QUOTA_EXCEEDED", Message: "VpcLimitExceeded: the limit of VPCs is reached"})
	s.createShoot(ctx)
	s.failAndRetry(ctx, gardencorev1beta1.ErrorInfraQuotaExceeded)
	s.until(ctx, "ready", ready)
	config := s.adminConfig(ctx)
	s.useShoot(ctx, config)
	s.changePools(ctx, config)
	if info := <-s.addons; info.TechnicalID != "shoot--core--n1" || len(info.Zones) != 3 {
		t.Errorf("addon got %+v", info)
	}

	s.stop()
	s.start(ctx)
	s.until(ctx, "ready after a restart", ready)
	nodes := &corev1.NodeList{}
	s.eventually(ctx, "the kubeconfig of before the restart", func() error { return newClient(t, config).List(ctx, nodes) })

	s.hibernate(ctx, true)
	s.hibernate(ctx, false)
	s.deleteShoot(ctx)
}

func (s *stack) createShoot(ctx context.Context) {
	for _, manifest := range []string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"garden-core","name":"aws"},"stringData":{"accessKeyID":"id","secretAccessKey":"key"}}`,
		`{"apiVersion":"security.gardener.cloud/v1alpha1","kind":"CredentialsBinding","metadata":{"namespace":"garden-core","name":"aws"},
		  "provider":{"type":"aws"},"credentialsRef":{"apiVersion":"v1","kind":"Secret","namespace":"garden-core","name":"aws"}}`,
		`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"namespace":"garden-core","name":"n1"},"spec":{
		  "cloudProfile":{"kind":"CloudProfile","name":"aws"},"region":"us-west-2","credentialsBindingName":"aws",
		  "kubernetes":{"version":"1.33"},
		  "networking":{"type":"calico","nodes":"10.250.0.0/16","pods":"100.64.0.0/11","services":"100.104.0.0/13"},
		  "provider":{"type":"aws","workers":[{"name":"system","minimum":3,"maximum":3,"machine":{"type":"m5.large"},
		    "volume":{"type":"gp3","size":"50Gi"},"zones":["us-west-2a","us-west-2b","us-west-2c"],"labels":{"team":"infra"}}]}}}`,
	} {
		object := &unstructured.Unstructured{}
		check(s.t, json.Unmarshal([]byte(manifest), &object.Object))
		// The gardener-apiserver's caches lag behind what the next object needs.
		s.eventually(ctx, "create "+object.GetKind(), func() error {
			err := s.client.Create(ctx, object.DeepCopy())
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	}
}

// failAndRetry waits until Gardener gives up because of code, and retries.
func (s *stack) failAndRetry(ctx context.Context, code gardencorev1beta1.ErrorCode) {
	s.until(ctx, "failed by "+string(code), func(shoot *gardencorev1beta1.Shoot) bool {
		last := shoot.Status.LastOperation
		return last != nil && last.State == gardencorev1beta1.LastOperationStateFailed
	})
	shoot := s.shoot(ctx)
	if e := shoot.Status.LastErrors; len(e) != 1 || len(e[0].Codes) != 1 || e[0].Codes[0] != code {
		s.t.Fatalf("lastErrors = %+v", e)
	}
	base := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "gardener.cloud/operation", "retry")
	check(s.t, s.client.Patch(ctx, shoot, client.MergeFrom(base)))
	if shoot.Generation <= base.Generation {
		s.t.Fatalf("retry left generation %d", shoot.Generation)
	}
}

// adminConfig asks Gardener's own adminkubeconfig.
func (s *stack) adminConfig(ctx context.Context) *rest.Config {
	request := &authenticationv1alpha1.AdminKubeconfigRequest{
		Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: new(int64(3600))},
	}
	check(s.t, s.client.SubResource("adminkubeconfig").Create(ctx, s.shoot(ctx), request))
	config, err := clientcmd.RESTConfigFromKubeConfig(request.Status.Kubeconfig)
	check(s.t, err)
	return config
}

// useShoot runs a StatefulSet with a volume in the shoot, as its admin.
func (s *stack) useShoot(ctx context.Context, config *rest.Config) {
	shoot := newClient(s.t, config)
	nodes := &corev1.NodeList{}
	check(s.t, shoot.List(ctx, nodes, client.MatchingLabels{"worker.gardener.cloud/pool": "system", "team": "infra"}))
	zones := map[string]bool{}
	for _, n := range nodes.Items {
		zones[n.Labels[corev1.LabelTopologyZone]] = true
	}
	if len(nodes.Items) != 3 || len(zones) != 3 {
		s.t.Errorf("%d nodes in zones %v, want 3 in 3", len(nodes.Items), zones)
	}
	labels := map[string]string{"app": "db"}
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gp3"}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: &wait}
	check(s.t, shoot.Create(ctx, class))
	s.eventually(ctx, "StatefulSet", func() error {
		return client.IgnoreAlreadyExists(shoot.Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"},
			Spec: appsv1.StatefulSetSpec{
				Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}}},
				},
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
					ObjectMeta: metav1.ObjectMeta{Name: "data"},
					Spec: corev1.PersistentVolumeClaimSpec{
						StorageClassName: &class.Name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
						Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
					},
				}},
			},
		}))
	})
	s.eventually(ctx, "running pods", func() error {
		set := &appsv1.StatefulSet{}
		if err := shoot.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db"}, set); err != nil {
			return err
		}
		if set.Status.ReadyReplicas != 2 {
			return fmt.Errorf("%d of 2 replicas are ready", set.Status.ReadyReplicas)
		}
		return nil
	})
}

func (s *stack) hibernate(ctx context.Context, enabled bool) {
	shoot := s.shoot(ctx)
	base := shoot.DeepCopy()
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &enabled}
	check(s.t, s.client.Patch(ctx, shoot, client.MergeFrom(base)))
	s.until(ctx, fmt.Sprintf("hibernated=%t", enabled), func(shoot *gardencorev1beta1.Shoot) bool {
		return ready(shoot) && shoot.Status.IsHibernated == enabled
	})
	if up := len(s.let.Shoots()); (up == 0) != enabled {
		s.t.Errorf("hibernated=%t, and %d shoot clusters are up", enabled, up)
	}
}

func (s *stack) deleteShoot(ctx context.Context) {
	shoot := s.shoot(ctx)
	if err := s.client.Delete(ctx, shoot); !apierrors.IsForbidden(err) {
		s.t.Errorf("unconfirmed deletion: %v, want forbidden", err)
	}
	base := shoot.DeepCopy()
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "confirmation.gardener.cloud/deletion", "true")
	check(s.t, s.client.Patch(ctx, shoot, client.MergeFrom(base)))
	s.cloud.failNext(&gardenlet.InfraError{Code: "ERR_INFRA_DEPENDENCIES", Message: "DependencyViolation: the VPC has dependencies"})
	check(s.t, s.client.Delete(ctx, shoot))
	s.failAndRetry(ctx, gardencorev1beta1.ErrorInfraDependencies)
	begin := time.Now()
	s.eventually(ctx, "deleted", func() error {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(shoot), shoot)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("shoot: %v, %+v", err, shoot.Status.LastOperation)
	})
	s.t.Logf("deleted in %s", time.Since(begin))
	if s.cloud.has("shoot--core--n1") || len(s.let.Shoots()) != 0 {
		s.t.Error("the cloud or an API server is left")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "shoots", "shoot--core--n1")); !os.IsNotExist(err) {
		s.t.Errorf("folder of the shoot: %v, want it gone", err)
	}
	secrets := &gardencorev1beta1.InternalSecretList{}
	check(s.t, s.client.List(ctx, secrets))
	if len(secrets.Items) != 0 {
		s.t.Errorf("%d internal secrets are left", len(secrets.Items))
	}
}
