package v1_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// says matches the assertion on a message in the tables of rules.
var says = regexp.MustCompile("says: (\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)")

// Whoever adds a rule adds the object that it refuses.
func TestEveryRuleRefusesSomething(t *testing.T) {
	files, err := filepath.Glob("rules_*_test.go")
	require.NoError(t, err)
	var asserted []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range says.FindAllStringSubmatch(string(source), -1) {
			text, err := strconv.Unquote(m[1])
			require.NoError(t, err, m[1])
			asserted = append(asserted, text)
		}
	}
	rules := 0
	for kind, k := range load(t) {
		eachRule(k.Structural, kind, func(path, message string) {
			rules++
			require.NotEmpty(t, message, "%s: a rule without a message shows CEL to people", path)
			for _, text := range asserted {
				if strings.Contains(message, text) {
					return
				}
			}
			t.Errorf("%s: no table of rules_*_test.go asserts the refusal %q", path, message)
		})
	}
	require.Greater(t, rules, 50, "the walk over the schemas finds the rules")
}

func eachRule(s *schema.Structural, path string, visit func(path, message string)) {
	for _, r := range s.XValidations {
		visit(path, r.Message)
	}
	for name := range s.Properties {
		property := s.Properties[name]
		eachRule(&property, path+"."+name, visit)
	}
	if s.Items != nil {
		eachRule(s.Items, path+"[]", visit)
	}
}

// defaults is what the schemas add to the spec of the minimal objects.
var defaults = map[string]string{
	"Account": `
tenantID: "1"
deletionPolicy: Delete`,
	"ProviderType": `
cloud: AWS
backend: Gardener
gardener: {cloudProfile: {kind: CloudProfile, name: aws}, kubernetesVersion: "1.33", networkingType: calico, credentialsKind: CredentialsBinding}
regions: [{name: us-west-2, zones: [us-west-2a]}]
machineClasses: [{name: 4C16G, vcpu: 4, memory: 16Gi, machineType: m5.xlarge}]
storageClasses: [{name: Standard, type: gp3, minSize: 10Gi, maxSize: 16Ti, resizeCooldown: 6h}]
networkLimits: {vpcCIDRs: [10.250.0.0/15, 172.16.0.0/12, 192.168.0.0/16], minPrefix: 16, maxPrefix: 23}
timeouts: {shootCreate: 60m, shootDelete: 90m, wake: 30m, clusterCreate: 60m, peerAccept: 168h, pausedMax: 168h, hibernateIdle: 2h}
deletionPolicy: Delete`,
	"Provider": `
type: t
account: acme
credentials: {secretRef: {name: s}}
aws: {accountID: "123456789012", partition: aws}
deletionPolicy: Delete`,
	"Network": `
provider: prov
region: us-west-2
cidr: {vpc: 10.250.0.0/16, pods: 100.64.0.0/11, services: 100.104.0.0/13}
purpose: production
maintenanceWindow: {begin: "220000+0000", end: "230000+0000"}
systemPool: {machineClass: 4C16G, minimum: 2, maximum: 3}
dns: {visibility: Private}
bucket: {retain: true}
o11y: {enabled: true}
deletionPolicy: Delete`,
	"Cluster": `
network: net
version: v8.5.2
operator: V1
topology:
  pd: {replicas: 1, machineClass: 4C16G, storage: {size: 20Gi, class: Standard}}
  tidb: {replicas: 1, machineClass: 4C16G}
  tikv: {replicas: 3, machineClass: 4C16G, storage: {size: 200Gi, class: Standard}}
port: 4000
rootPasswordSecretRef: {name: r}
paused: false
bootstrap: {mode: Empty}
encryption: {mode: ServiceManaged}
endpoints: {public: {enabled: false}, private: {enabled: true}}
backupPolicy: {schedule: Daily, timeUTC: "02:00", retentionDays: 7, pitr: false}
retainBackups: true
changeWindow: Immediate
deletionPolicy: Delete`,
}

func TestDefaults(t *testing.T) {
	for kind, k := range load(t) {
		t.Run(kind, func(t *testing.T) {
			raw, err := yaml.YAMLToJSONStrict([]byte(defaults[kind]))
			require.NoError(t, err)
			want := map[string]any{}
			require.NoError(t, utiljson.Unmarshal(raw, &want))
			require.Equal(t, want, k.Default(object(t, kind, minimal[kind], nil))["spec"])
		})
	}
}

// An object that is half given gets the other half.
func TestDefaultsInsideOfGivenObjects(t *testing.T) {
	kinds := load(t)
	for name, c := range map[string]struct {
		kind    string
		given   set
		path    string
		becomes any
	}{
		"one range":       {"Network", set{"spec.cidr": map[string]any{"vpc": "172.16.0.0/16"}}, "spec.cidr.pods", "100.64.0.0/11"},
		"half a window":   {"Network", set{"spec.maintenanceWindow": map[string]any{"begin": "210000+0000"}}, "spec.maintenanceWindow.end", "230000+0000"},
		"half a pool":     {"Network", set{"spec.systemPool": map[string]any{"maximum": 5}}, "spec.systemPool.minimum", int64(2)},
		"one endpoint":    {"Cluster", set{"spec.endpoints": map[string]any{"public": map[string]any{}}}, "spec.endpoints.private.enabled", true},
		"a backup time":   {"Cluster", set{"spec.backupPolicy": map[string]any{"timeUTC": "03:00"}}, "spec.backupPolicy.retentionDays", int64(7)},
		"encryption {}":   {"Cluster", set{"spec.encryption": map[string]any{}}, "spec.encryption.mode", "ServiceManaged"},
		"one prefix":      {"ProviderType", set{"spec.networkLimits": map[string]any{"minPrefix": 18}}, "spec.networkLimits.maxPrefix", int64(23)},
		"one timeout":     {"ProviderType", set{"spec.timeouts": map[string]any{"wake": "1h"}}, "spec.timeouts.shootDelete", "90m"},
		"TiFlash's class": {"Cluster", set{"spec.topology.tiflash": map[string]any{"replicas": 1, "machineClass": "8C32G", "storage": map[string]any{"size": "1Ti"}}}, "spec.topology.tiflash.storage.class", "Standard"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, c.kind, minimal[c.kind], c.given)
			require.Empty(t, kinds[c.kind].Create(o))
			got, found, err := unstructured.NestedFieldNoCopy(kinds[c.kind].Default(o), strings.Split(c.path, ".")...)
			require.NoError(t, err)
			require.True(t, found, c.path)
			require.Equal(t, c.becomes, got)
		})
	}
}
