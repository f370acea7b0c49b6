package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/api/v1/crdtest"
)

const crdFolder = "../../config/crd"

// bases are valid objects with every field that is supported.
var bases = map[string]string{
	"Account": `
metadata: {name: acme, namespace: infra}
spec: {tenantID: "1372813089", displayName: Acme, suspended: false, quotas: {networks: 10}}`,
	"ProviderType": `
metadata: {name: aws-gardener, namespace: infra}
spec:
  cloud: AWS
  backend: Gardener
  gardener: {cloudProfile: {kind: CloudProfile, name: aws}, networkingType: calico, kubernetesVersion: "1.33", seedName: "", credentialsKind: SecretBinding}
  regions:
  - {name: us-west-2, zones: [us-west-2a, us-west-2b, us-west-2c], deprecated: false}
  machineClasses:
  - {name: 8C32G, vcpu: 8, memory: 32Gi, machineType: m5.2xlarge, components: [TiDB, TiKV, PD, TiFlash, TiCDC]}
  storageClasses:
  - {name: Standard, type: gp3, iops: 3000, throughput: 125, minSize: 200Gi, maxSize: 4Ti, resizeCooldown: 6h}
  networkLimits: {vpcCIDRs: [10.250.0.0/15], minPrefix: 16, maxPrefix: 23}
  timeouts: {shootCreate: 60m, peerAccept: 168h}`,
	"Provider": `
metadata: {name: core-aws, namespace: infra}
spec:
  type: aws-gardener
  account: acme
  project: core
  credentials: {secretRef: {name: core-aws}}
  aws: {accountID: "123456789012", partition: aws}
  dns: {parentZoneID: Z0123, domain: clusters.example.com}`,
	"Network": `
metadata: {name: n1, namespace: infra}
spec:
  provider: core-aws
  account: acme
  tenantProject: "1234"
  region: us-west-2
  zones: [us-west-2a, us-west-2b, us-west-2c]
  shootName: n-3f9ac21
  cidr: {vpc: 10.250.0.0/16, pods: 100.64.0.0/11, services: 100.104.0.0/13}
  kubernetesVersion: "1.33"
  purpose: production
  maintenanceWindow: {begin: "220000+0000", end: "230000+0000"}
  systemPool: {machineClass: 4C16G, minimum: 2, maximum: 3}
  hibernation: {mode: Never}
  dns: {visibility: Private}
  bucket: {retain: true}
  o11y: {enabled: true}`,
	"Cluster": `
metadata: {name: c1, namespace: infra}
spec:
  network: n1
  displayName: orders
  version: v8.5.2
  operator: V1
  topology:
    pd: {replicas: 3, machineClass: 4C16G, storage: {size: 20Gi, class: Standard}}
    tidb: {replicas: 2, machineClass: 8C32G}
    tikv: {replicas: 3, machineClass: 8C32G, storage: {size: 500Gi, class: Standard}}
    tiflash: {replicas: 0, machineClass: 8C32G, storage: {size: 500Gi, class: Standard}}
  port: 4000
  rootPasswordSecretRef: {name: c1-root}
  paused: false
  bootstrap: {mode: Empty}
  encryption: {mode: ServiceManaged, customerKeyARN: ""}
  endpoints:
    public: {enabled: false, allowCIDRs: []}
    private: {enabled: true, allowedPrincipals: ["arn:aws:iam::123456789012:root"]}
  backupPolicy: {schedule: Daily, timeUTC: "02:00", retentionDays: 7, pitr: false}
  retainBackups: true
  changeWindow: Immediate`,
}

// minimal objects hold the required fields only.
var minimal = map[string]string{
	"Account": `
metadata: {name: acme}
spec: {tenantID: "1"}`,
	"ProviderType": `
metadata: {name: t}
spec:
  cloud: AWS
  gardener: {cloudProfile: {name: aws}, kubernetesVersion: "1.33"}
  regions: [{name: us-west-2, zones: [us-west-2a]}]
  machineClasses: [{name: 4C16G, vcpu: 4, memory: 16Gi, machineType: m5.xlarge}]
  storageClasses: [{name: Standard, type: gp3}]`,
	"Provider": `
metadata: {name: p}
spec: {type: t, account: acme, credentials: {secretRef: {name: s}}, aws: {accountID: "123456789012"}}`,
	"Network": `
metadata: {name: net}
spec: {provider: prov, region: us-west-2}`,
	"Cluster": `
metadata: {name: c}
spec:
  network: net
  version: v8.5.2
  topology:
    pd: {replicas: 1, machineClass: 4C16G}
    tidb: {replicas: 1, machineClass: 4C16G}
    tikv: {replicas: 3, machineClass: 4C16G, storage: {size: 200Gi}}
  rootPasswordSecretRef: {name: r}`,
}

// set is fields to set, by dotted path; remove removes one.
type set map[string]any

type removed struct{}

var remove = removed{}

func load(t *testing.T) map[string]*crdtest.Kind {
	t.Helper()
	kinds, err := crdtest.Load(crdFolder)
	require.NoError(t, err)
	delete(kinds, "Balancer") // of another group, see api/balancer
	return kinds
}

func object(t *testing.T, kind, manifest string, changes set) map[string]any {
	t.Helper()
	o := map[string]any{}
	raw, err := yaml.YAMLToJSONStrict([]byte(manifest))
	require.NoError(t, err)
	require.NoError(t, utiljson.Unmarshal(raw, &o)) // whole numbers become int64, as in an API server
	o["apiVersion"], o["kind"] = "cloud.pingcap.com/v1", kind
	for path, value := range changes {
		fields := strings.Split(path, ".")
		if value == remove {
			unstructured.RemoveNestedField(o, fields...)
			continue
		}
		require.NoError(t, unstructured.SetNestedField(o, normal(t, value), fields...))
	}
	return o
}

// normal turns a Go literal into what JSON decodes to.
func normal(t *testing.T, value any) any {
	raw, err := yaml.Marshal(map[string]any{"v": value})
	require.NoError(t, err)
	out := map[string]any{}
	require.NoError(t, yaml.Unmarshal(raw, &out))
	u := unstructured.Unstructured{}
	js, err := yaml.YAMLToJSON(append([]byte("apiVersion: v1\nkind: X\n"), raw...))
	require.NoError(t, err)
	require.NoError(t, u.UnmarshalJSON(js))
	return u.Object["v"]
}

func TestEveryCRDIsValid(t *testing.T) {
	kinds := load(t) // structural schema, CEL compilation and cost
	require.Len(t, kinds, len(bases))
	for kind, k := range kinds {
		for name, manifests := range map[string]map[string]string{"full": bases, "minimal": minimal} {
			o := object(t, kind, manifests[kind], nil)
			require.Empty(t, k.Unknown(o), "%s %s: fields that the schema does not know", name, kind)
			require.Empty(t, k.Create(o), "%s %s", name, kind)
			require.Empty(t, k.Update(o, o), "%s %s: a change of nothing", name, kind)
			require.Empty(t, k.Update(k.Default(o), o), "%s %s: defaults are no change", name, kind)
		}
	}
}

// rule is one rule of a schema with an object that passes and one that fails.
type rule struct {
	kind string
	pass set // over the base
	fail set
	says string // the refusal holds it
	// from, when not nil, is the object before: pass and fail are changes of it.
	from set
}

func check(t *testing.T, rules map[string]rule) {
	kinds := load(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			k := kinds[r.kind]
			admit := func(changes set) field.ErrorList {
				o := object(t, r.kind, bases[r.kind], changes)
				if r.from == nil {
					return k.Create(o)
				}
				return k.Update(o, object(t, r.kind, bases[r.kind], r.from))
			}
			require.Empty(t, admit(r.pass), "must pass")
			refused := admit(r.fail).ToAggregate()
			require.Error(t, refused, "must be refused")
			require.Contains(t, refused.Error(), r.says)
		})
	}
}
