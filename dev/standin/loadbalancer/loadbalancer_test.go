package loadbalancer

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidbcloud/infra-orchestrator/dev/awsproxy"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

const technicalID = "shoot--core--n-1"

func sqlService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tidb-1a2b3c4d", Name: "sql", Annotations: map[string]string{
			annotationPrefix + "type":                     "external",
			annotationPrefix + "scheme":                   "internal",
			annotationPrefix + "nlb-target-type":          "instance",
			annotationPrefix + "additional-resource-tags": "infra.cloud.pingcap.com/id=1a2b3c4d5e6f7081,infra.cloud.pingcap.com/kind=Cluster",
		}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "mysql", Port: 4000, NodePort: 30400}}},
	}
}

// world is a shoot with one Service and an AWS account with its subnets.
type world struct {
	t      *testing.T
	aws    *awsproxy.Stack
	cfg    aws.Config
	client client.Client
	faults *control.Registry
	r      *reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	w := &world{t: t, faults: control.NewRegistry()}
	w.aws, err = awsproxy.Start(context.Background(), awsproxy.StackOptions{
		Options:  awsproxy.Options{Speed: 10, Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		CacheDir: filepath.Join(cache, "infra-orchestrator"), LogDir: t.TempDir(),
	})
	w.check(err)
	t.Cleanup(w.aws.Stop)
	w.cfg = awsproxy.ClientConfig(w.aws.URL, "us-west-2", "AKIASHOOT", "x", clientName)
	tags := func(kind ec2types.ResourceType, keys ...string) []ec2types.TagSpecification {
		spec := ec2types.TagSpecification{ResourceType: kind}
		for _, key := range keys {
			spec.Tags = append(spec.Tags, ec2types.Tag{Key: aws.String(key), Value: aws.String("1")})
		}
		return []ec2types.TagSpecification{spec}
	}
	c, cluster := ec2.NewFromConfig(w.cfg), "kubernetes.io/cluster/"+technicalID
	vpc, err := c.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16"), TagSpecifications: tags(ec2types.ResourceTypeVpc, cluster)})
	w.check(err)
	for cidr, role := range map[string]string{"10.0.0.0/24": "kubernetes.io/role/internal-elb", "10.0.1.0/24": "kubernetes.io/role/elb"} {
		_, err := c.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String(cidr),
			TagSpecifications: tags(ec2types.ResourceTypeSubnet, cluster, role)})
		w.check(err)
	}
	w.client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithStatusSubresource(&corev1.Service{}).WithObjects(sqlService()).Build()
	w.r = &reconciler{
		client: w.client, faults: w.faults, events: events.NewFakeRecorder(100),
		shoot: gardenlet.ShootInfo{Namespace: "garden-core", Name: "n-1", TechnicalID: technicalID},
		cloud: func(context.Context) (*cloud, error) { return newCloud(w.cfg, technicalID), nil },
	}
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// reconcile runs one round and returns the Service, nil when it is gone.
func (w *world) reconcile() (*corev1.Service, error) {
	w.t.Helper()
	key := client.ObjectKeyFromObject(sqlService())
	_, failed := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
	var s corev1.Service
	err := w.client.Get(w.t.Context(), key, &s)
	if apierrors.IsNotFound(err) {
		return nil, failed
	}
	w.check(err)
	return &s, failed
}

func (w *world) types() map[string]int {
	w.t.Helper()
	list, err := w.aws.Inventory(w.t.Context(), control.InventoryQuery{Owner: "1a2b3c4d5e6f7081"})
	w.check(err)
	found := map[string]int{}
	for _, r := range list {
		found[r.Type]++
	}
	return found
}

func TestServiceGetsAndLosesItsLoadBalancer(t *testing.T) {
	w := newWorld(t)
	fault, err := w.faults.Add(control.Fault{Target: control.TargetLoadBalancer, Kind: control.KindStuck, Name: "sql", Shoot: "n-1"})
	w.check(err)
	if s, _ := w.reconcile(); len(s.Finalizers) != 0 || len(w.types()) != 0 {
		t.Fatalf("a stuck Service got finalizers %v and %v", s.Finalizers, w.types())
	}
	w.faults.Remove(fault.ID)

	var s *corev1.Service
	for range 2 { // the second round changes nothing
		s, err = w.reconcile()
		w.check(err)
		if want := map[string]int{"elasticloadbalancing/loadbalancer": 1, "elasticloadbalancing/targetgroup": 1}; !maps.Equal(w.types(), want) {
			t.Fatalf("made %v, want %v", w.types(), want)
		}
	}
	if len(s.Status.LoadBalancer.Ingress) != 1 || !strings.HasSuffix(s.Status.LoadBalancer.Ingress[0].Hostname, ".elb.us-west-2.amazonaws.com") {
		t.Errorf("status %+v", s.Status.LoadBalancer)
	}
	if len(s.Finalizers) != 1 || s.Finalizers[0] != finalizer {
		t.Errorf("finalizers %v", s.Finalizers)
	}
	lb, err := newCloud(w.cfg, technicalID).find(t.Context(), s.Namespace, s.Name)
	w.check(err)
	listeners, err := elb.NewFromConfig(w.cfg).DescribeListeners(t.Context(), &elb.DescribeListenersInput{LoadBalancerArn: lb.LoadBalancerArn})
	w.check(err)
	if len(listeners.Listeners) != 1 || aws.ToInt32(listeners.Listeners[0].Port) != 4000 || lb.Scheme != "internal" {
		t.Errorf("scheme %s, listeners %+v", lb.Scheme, listeners.Listeners)
	}

	c := ec2.NewFromConfig(w.cfg)
	service, err := c.CreateVpcEndpointServiceConfiguration(t.Context(), &ec2.CreateVpcEndpointServiceConfigurationInput{
		NetworkLoadBalancerArns: []string{aws.ToString(lb.LoadBalancerArn)}})
	w.check(err)
	w.check(w.client.Delete(t.Context(), s))
	if s, err := w.reconcile(); s == nil || err == nil || !strings.Contains(err.Error(), "ResourceInUse") {
		t.Fatalf("deleted under an endpoint service: %v", err)
	}
	_, err = c.DeleteVpcEndpointServiceConfigurations(t.Context(), &ec2.DeleteVpcEndpointServiceConfigurationsInput{
		ServiceIds: []string{aws.ToString(service.ServiceConfiguration.ServiceId)}})
	w.check(err)
	s, err = w.reconcile()
	w.check(err)
	if s != nil || len(w.types()) != 0 {
		t.Errorf("after deletion: service %v, AWS %v", s != nil, w.types())
	}
}

func TestWanted(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Service)
		want   bool
	}{
		"external":         {func(*corev1.Service) {}, true},
		"nlb":              {func(s *corev1.Service) { s.Annotations[annotationPrefix+"type"] = "nlb" }, true},
		"in-tree provider": {func(s *corev1.Service) { delete(s.Annotations, annotationPrefix+"type") }, false},
		"ClusterIP":        {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }, false},
		"class":            {func(s *corev1.Service) { s.Annotations = nil; s.Spec.LoadBalancerClass = aws.String(class) }, true},
		"another class":    {func(s *corev1.Service) { s.Spec.LoadBalancerClass = aws.String("example.com/lb") }, false},
	} {
		s := sqlService()
		tc.change(s)
		if got := wanted(s); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
