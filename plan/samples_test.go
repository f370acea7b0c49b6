package plan

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/api/v1/crdtest"
)

var loadCRDs = sync.OnceValues(func() (map[string]*crdtest.Kind, error) { return crdtest.Load("../config/crd") })

const samplesFolder = "../deploy/samples/aws"

// world is one object of each kind, as an API server would return it.
type world struct {
	account  *v1.Account
	pt       *v1.ProviderType
	provider *v1.Provider
	network  *v1.Network
	cluster  *v1.Cluster
	secrets  map[string]map[string]string
}

// samples reads deploy/samples/aws through the schemas. Identities are those
// that a bridge would have minted.
func samples(t *testing.T) *world {
	t.Helper()
	kinds, err := loadCRDs()
	require.NoError(t, err)
	w := &world{
		account: &v1.Account{}, pt: &v1.ProviderType{}, provider: &v1.Provider{}, network: &v1.Network{}, cluster: &v1.Cluster{},
		secrets: map[string]map[string]string{},
	}
	into := map[string]v1.Object{
		v1.KindAccount: w.account, v1.KindProviderType: w.pt, v1.KindProvider: w.provider, v1.KindNetwork: w.network, v1.KindCluster: w.cluster,
	}
	files, err := filepath.Glob(filepath.Join(samplesFolder, "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range bytes.Split(raw, []byte("\n---\n")) {
			w.read(t, file, document, kinds, into)
		}
	}
	for kind, o := range into {
		require.NotEmpty(t, o.GetName(), "there is no sample of %s", kind)
		require.Equal(t, "infra", o.GetNamespace())
	}
	w.provider.Annotations = map[string]string{v1.AnnotationID: "aaaabbbbccccdddd"}
	w.network.Annotations = map[string]string{v1.AnnotationID: "0123456789abcdef"}
	w.cluster.Annotations = map[string]string{v1.AnnotationID: "fedcba9876543210"}
	return w
}

func (w *world) read(t *testing.T, file string, document []byte, kinds map[string]*crdtest.Kind, into map[string]v1.Object) {
	t.Helper()
	o, err := crdtest.Decode(document)
	require.NoError(t, err, file)
	kind, _ := o["kind"].(string)
	if kind == "Secret" {
		var s corev1.Secret
		require.NoError(t, yaml.UnmarshalStrict(document, &s), file)
		w.secrets[s.Name] = s.StringData
		return
	}
	k, ok := kinds[kind]
	require.True(t, ok, "%s: there is no CRD of kind %q", file, kind)
	require.Empty(t, k.Unknown(o), "%s: fields that the schema does not know", file)
	require.Empty(t, k.Create(o), file)
	raw, err := json.Marshal(k.Default(o))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(raw, into[kind]), file)
}

// ready publishes what a Network publishes when it is.
func (w *world) ready() *world {
	w.network.Status.ObservedGeneration = 1
	w.network.Status.Shoot = &v1.NetworkShootStatus{Namespace: "garden-core", Name: ShootName(w.network), TechnicalID: "shoot--core--n-1"}
	w.network.Status.VPC = &v1.NetworkVPCStatus{ID: "vpc-1", CIDR: "10.250.0.0/16", Zones: []string{"us-west-2a", "us-west-2b", "us-west-2c"}}
	w.network.Status.OIDC = &v1.NetworkOIDCStatus{Issuer: "https://issuer", ProviderARN: "arn:aws:iam::123456789012:oidc-provider/issuer"}
	w.network.Status.DNSZone = &v1.NetworkDNSZoneStatus{ID: "Z1", Name: ShootName(w.network) + ".clusters.example.com"}
	w.network.Status.Bucket = &v1.NetworkBucketStatus{Name: "ic-01234567-789012-data"}
	return w
}

var options = Options{Env: "dev", DefaultProject: "default"}

func TestSamplesFitTogether(t *testing.T) {
	w := samples(t)
	require.Equal(t, w.account.Name, string(w.provider.Spec.Account))
	require.Equal(t, w.pt.Name, string(w.provider.Spec.Type))
	require.Equal(t, w.provider.Name, string(w.network.Spec.Provider))
	require.Equal(t, w.network.Name, string(w.cluster.Spec.Network))
	credentials := w.secrets[w.provider.Spec.Credentials.SecretRef.Name]
	require.NotEmpty(t, credentials["accessKeyID"])
	require.NotEmpty(t, credentials["secretAccessKey"])
	password := w.secrets[w.cluster.Spec.RootPasswordSecretRef.Name]["password"]
	require.True(t, len(password) >= 8 && len(password) <= 64, "the root password has 8 to 64 characters")
}

func TestSamplesArePlanned(t *testing.T) {
	w := samples(t).ready()
	require.NoError(t, ProviderType(w.pt))
	provider, err := Provider(w.provider, w.pt, w.account, options)
	require.NoError(t, err)
	network, err := Network(w.network, w.provider, w.pt, w.account, options)
	require.NoError(t, err)
	cluster, err := Cluster(w.cluster, w.network, w.provider, w.pt, w.account, options)
	require.NoError(t, err)

	golden(t, "provider", provider)
	golden(t, "network", network)
	golden(t, "cluster", cluster)
}

// golden compares a plan with testdata/<name>.yaml; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name string, plan any) {
	t.Helper()
	got, err := yaml.Marshal(plan)
	require.NoError(t, err)
	file := filepath.Join("testdata", name+".yaml")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run with UPDATE_GOLDEN=1 if the change is meant")
}

// An object that did not pass an API server is planned as one that did.
func TestDefaultsAreThoseOfTheSchema(t *testing.T) {
	defaulted := samples(t).ready()
	bare := samples(t).ready()
	bare.network.Spec = v1.NetworkSpec{Provider: "core-aws", Region: "us-west-2"}
	bare.cluster.Spec = v1.ClusterSpec{
		Network: "n1", Version: "v8.5.2", Topology: v1.Topology{
			PD:   v1.PDTopology{Replicas: 1, MachineClass: "4C16G"},
			TiDB: v1.TiDBTopology{Replicas: 1, MachineClass: "4C16G"},
			TiKV: v1.TiKVTopology{Replicas: 3, MachineClass: "4C16G", Storage: v1.Storage{Size: "200Gi"}},
		},
		RootPasswordSecretRef: &v1.SecretReference{Name: "r"},
	}
	bare.pt.Spec.NetworkLimits, bare.pt.Spec.Timeouts = v1.NetworkLimits{}, v1.Timeouts{}
	bare.pt.Spec.StorageClasses = []v1.StorageClass{{Name: "Standard", Type: "gp3"}}
	bare.pt.Spec.Gardener = v1.GardenerSettings{CloudProfile: v1.CloudProfileReference{Name: "aws"}, KubernetesVersion: "1.33"}

	kinds, err := loadCRDs()
	require.NoError(t, err)
	through := func(kind string, from, into any) {
		raw, err := json.Marshal(from)
		require.NoError(t, err)
		o, err := crdtest.Decode(raw)
		require.NoError(t, err)
		raw, err = json.Marshal(kinds[kind].Default(prune(o).(map[string]any)))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, into))
	}
	defaulted.network, defaulted.cluster, defaulted.pt = &v1.Network{}, &v1.Cluster{}, &v1.ProviderType{}
	through(v1.KindNetwork, bare.network, defaulted.network)
	through(v1.KindCluster, bare.cluster, defaulted.cluster)
	through(v1.KindProviderType, bare.pt, defaulted.pt)
	require.NotEqual(t, bare.network.Spec, defaulted.network.Spec)

	require.NoError(t, ProviderType(bare.pt))
	for _, w := range []*world{bare, defaulted} {
		n, err := Network(w.network, w.provider, w.pt, w.account, options)
		require.NoError(t, err)
		c, err := Cluster(w.cluster, w.network, w.provider, w.pt, w.account, options)
		require.NoError(t, err)
		n0, err := Network(bare.network, bare.provider, bare.pt, bare.account, options)
		require.NoError(t, err)
		c0, err := Cluster(bare.cluster, bare.network, bare.provider, bare.pt, bare.account, options)
		require.NoError(t, err)
		require.Equal(t, n0, n)
		require.Equal(t, c0, c)
	}
}

// prune drops empty objects, which Go types without pointers marshal to: a
// manifest would not hold them.
func prune(value any) any {
	m, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for k, v := range m {
		v = prune(v)
		if inner, ok := v.(map[string]any); v == nil || v == "" || ok && len(inner) == 0 {
			continue
		}
		out[k] = v
	}
	return out
}
