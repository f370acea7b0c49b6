package awsinfra

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidbcloud/infra-orchestrator/dev/awsproxy"
	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

const technicalID = "shoot--core--n-1"

const infrastructureConfig = `{"apiVersion":"aws.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig","networks":{"vpc":{"cidr":"10.250.0.0/16"},
"zones":[{"name":"us-west-2a","workers":"10.250.0.0/19","public":"10.250.96.0/22","internal":"10.250.112.0/22"},
{"name":"us-west-2b","workers":"10.250.32.0/19","public":"10.250.100.0/22","internal":"10.250.116.0/22"}]}}`

func testShoot() *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-core", Name: "n-1"},
		Spec: gardencorev1beta1.ShootSpec{
			Region: "us-west-2", CredentialsBindingName: aws.String("core-aws"),
			Provider: gardencorev1beta1.Provider{InfrastructureConfig: &runtime.RawExtension{Raw: []byte(infrastructureConfig)}},
		},
	}
}

// garden has the Shoot, its binding and its Secret with the access key.
func garden(t *testing.T, accessKey string) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), gardencorev1beta1.AddToScheme(scheme), securityv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "garden-core", Name: "core-aws"}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"accessKeyID": []byte(accessKey), "secretAccessKey": []byte("x")}},
		&securityv1alpha1.CredentialsBinding{ObjectMeta: meta, CredentialsRef: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: "garden-core", Name: "core-aws"}},
		testShoot(),
	).Build()
}

func startEmulator(t *testing.T) *awsproxy.Stack {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	stack, err := awsproxy.Start(context.Background(), awsproxy.StackOptions{
		Options:  awsproxy.Options{Speed: 10, Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		CacheDir: filepath.Join(cache, "infra-orchestrator"), LogDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stack.Stop)
	return stack
}

func count(t *testing.T, stack *awsproxy.Stack) map[string]int {
	t.Helper()
	list, err := stack.Inventory(t.Context(), control.InventoryQuery{Cluster: technicalID})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, r := range list {
		found[r.Type]++
	}
	return found
}

func TestReconcileTwiceThenDelete(t *testing.T) {
	ctx, stack := t.Context(), startEmulator(t)
	i := &Infrastructure{garden: garden(t, "AKIAGARDEN"), endpoint: stack.URL, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	want := map[string]int{
		"ec2/vpc": 1, "ec2/subnet": 6, "ec2/internet-gateway": 1, "ec2/nat-gateway": 2, "ec2/elastic-ip": 2, "ec2/route-table": 3,
		"ec2/security-group": 1, "ec2/key-pair": 1, "iam/role": 1, "iam/instance-profile": 1,
	}
	for run := range 2 {
		if err := i.Reconcile(ctx, testShoot(), technicalID); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		if got := count(t, stack); !maps.Equal(got, want) {
			t.Fatalf("run %d made %v, want %v", run, got, want)
		}
	}
	calls := stack.Calls(control.CallQuery{Operation: "CreateVpc"})
	if len(calls) != 1 || calls[0].Client != clientName {
		t.Errorf("CreateVpc on record: %+v", calls)
	}

	foreign := foreignGroup(t, stack)
	err := i.Delete(ctx, testShoot(), technicalID)
	var infra *gardenlet.InfraError
	if !errors.As(err, &infra) || infra.Code != string(gardencorev1beta1.ErrorInfraDependencies) || !strings.Contains(infra.Message, "DependencyViolation") {
		t.Fatalf("deletion with a foreign security group: %v", err)
	}
	c := ec2.NewFromConfig(awsproxy.ClientConfig(stack.URL, "us-west-2", "AKIAPRODUCT", "x", "test"))
	if _, err := c.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &foreign}); err != nil {
		t.Fatal(err)
	}
	for run := range 2 {
		if err := i.Delete(ctx, testShoot(), technicalID); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
	}
	if got := count(t, stack); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

// foreignGroup puts a security group of somebody else into the Shoot's VPC.
func foreignGroup(t *testing.T, stack *awsproxy.Stack) string {
	t.Helper()
	list, err := stack.Inventory(t.Context(), control.InventoryQuery{Cluster: technicalID})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(r control.Resource) bool { return r.Type == "ec2/vpc" })
	c := ec2.NewFromConfig(awsproxy.ClientConfig(stack.URL, "us-west-2", "AKIAPRODUCT", "x", "test"))
	out, err := c.CreateSecurityGroup(t.Context(), &ec2.CreateSecurityGroupInput{
		GroupName: aws.String("foreign"), Description: aws.String("not Gardener's"), VpcId: aws.String(list[at].ID)})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.GroupId)
}

func TestWrongCredentials(t *testing.T) {
	stack := startEmulator(t)
	i := &Infrastructure{garden: garden(t, "AKIAINVALID1"), endpoint: stack.URL, log: slog.Default()}
	err := i.Reconcile(t.Context(), testShoot(), technicalID)
	var infra *gardenlet.InfraError
	if !errors.As(err, &infra) || infra.Code != string(gardencorev1beta1.ErrorInfraUnauthenticated) {
		t.Errorf("got %v", err)
	}
}

func TestConfigurationProblems(t *testing.T) {
	for name, raw := range map[string]string{
		"of another provider": `{"apiVersion":"gcp.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig"}`,
		"without a VPC":       strings.Replace(infrastructureConfig, `{"cidr":"10.250.0.0/16"}`, `{}`, 1),
		"without a subnet":    strings.Replace(infrastructureConfig, `"public":"10.250.100.0/22",`, "", 1),
		"no JSON":             "{",
	} {
		shoot := testShoot()
		shoot.Spec.Provider.InfrastructureConfig.Raw = []byte(raw)
		_, err := decodeConfig(shoot)
		var infra *gardenlet.InfraError
		if !errors.As(err, &infra) || infra.Code != string(gardencorev1beta1.ErrorConfigurationProblem) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
