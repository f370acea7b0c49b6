package builders_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/builders/shootrules"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

var worlds = flag.Int("worlds", 5000, "random worlds for each cloud in the property test")

// world is a Network with what it refers to.
type world struct {
	network  *v1.Network
	provider *v1.Provider
	pt       *v1.ProviderType
}

func (w world) plan() (contract.NetworkPlan, error) {
	of := plan.Network
	if w.pt.Spec.Cloud == v1.CloudGCP {
		of = plan.GCPNetwork
	}
	return of(w.network, w.provider, w.pt, nil, plan.Options{Env: "dev", DefaultProject: "core"})
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// mostly is a good value nine times of ten, otherwise a bad one.
func mostly[T any](r *rand.Rand, good []T, bad ...T) T {
	if r.IntN(10) > 0 {
		return pick(r, good...)
	}
	return pick(r, bad...)
}

// random is a world that the schema admits, more often right than wrong.
func random(r *rand.Rand, cloud v1.Cloud) world {
	annotations := map[string]string{v1.AnnotationID: fmt.Sprintf("%016x", r.Uint64())}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "infra", Name: name, Annotations: annotations}
	}
	region, separator := v1.RegionName("us-west-2"), ""
	if cloud == v1.CloudGCP {
		region, separator = "us-central1", "-"
	}
	var zones []v1.ZoneName
	for i := range 1 + r.IntN(6) {
		zones = append(zones, v1.ZoneName(string(region)+separator+string(rune('a'+i))))
	}
	w := world{
		network: &v1.Network{ObjectMeta: meta("n1")}, provider: &v1.Provider{ObjectMeta: meta("p1")}, pt: &v1.ProviderType{ObjectMeta: meta("t1")},
	}
	w.pt.Spec = v1.ProviderTypeSpec{
		Cloud: cloud, Regions: []v1.Region{{Name: region, Zones: zones}},
		MachineClasses: []v1.MachineClass{{Name: "4C16G", VCPU: 4, Memory: "16Gi", MachineType: "m5.xlarge"}},
		Gardener: v1.GardenerSettings{
			CloudProfile:      v1.CloudProfileReference{Kind: pick(r, "", "CloudProfile", "NamespacedCloudProfile"), Name: "profile"},
			NetworkingType:    pick(r, "", "calico", "cilium"),
			SeedName:          pick(r, "", "", "seed-a"),
			CredentialsKind:   pick(r, "", "CredentialsBinding", "SecretBinding"),
			KubernetesVersion: pick[v1.KubernetesVersion](r, "1.33", "1.34"),
		},
		NetworkLimits: pick(r, v1.NetworkLimits{}, v1.NetworkLimits{MinPrefix: 8, MaxPrefix: 28, VPCCIDRs: []v1.CIDR{"10.0.0.0/8", "172.16.0.0/12"}}),
	}
	for _, kind := range disks(r, cloud) {
		w.pt.Spec.StorageClasses = append(w.pt.Spec.StorageClasses, v1.StorageClass{Name: v1.ClassName(kind), Type: kind})
	}
	w.provider.Spec = v1.ProviderSpec{Type: "t1", Account: "acme", Project: mostly(r, []string{"", "core", "a", "ten-chars1"}, "a--b")}
	if pick(r, true, true, true, false) {
		w.provider.Spec.DNS = &v1.ProviderDNS{Domain: "clusters.example.com"}
	}
	if cloud == v1.CloudGCP {
		w.provider.Spec.GCP = &v1.GCPProject{ProjectID: "core-prod"}
	} else {
		w.provider.Spec.AWS = &v1.AWSAccount{AccountID: "123456789012"}
	}
	w.network.Spec = spec(r, region, zones)
	return w
}

// disks are some types of volumes of the cloud, in any order; sometimes none
// of them can be a node's own.
func disks(r *rand.Rand, cloud v1.Cloud) []string {
	all := []string{"gp2", "gp3", "io1", "io2"}
	if cloud == v1.CloudGCP {
		all = []string{"pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced", "SCRATCH"}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+r.IntN(len(all))]
}

func spec(r *rand.Rand, region v1.RegionName, zones []v1.ZoneName) v1.NetworkSpec {
	cidr := func(bases []string, good []int, bad ...int) v1.CIDR {
		return v1.CIDR(fmt.Sprintf("%s/%d", mostly(r, bases, "10.250.0.0", "100.64.0.0", "10.1.0.1"), mostly(r, good, bad...)))
	}
	s := v1.NetworkSpec{
		Provider: "p1", Region: region,
		Purpose:           pick(r, "", "production", "testing", "development", "evaluation"),
		KubernetesVersion: mostly(r, []v1.KubernetesVersion{"", "1.32", "1.33.4", "1.36.1"}, "1.31.2", "1.37"),
		ShootName:         mostly(r, []string{"", "n-1", "eleven-char"}, "seventeen-chars-x", "twenty-characters-xx", "a--b"),
		MaintenanceWindow: mostly(r, []v1.MaintenanceWindow{{}, {Begin: "233000+0000", End: "013000+0000"}, {Begin: "010000+0200", End: "010000+0100"}},
			v1.MaintenanceWindow{Begin: "010000+0000", End: "080000+0000"}),
		SystemPool: v1.SystemPool{Minimum: int32(1 + r.IntN(3)), Maximum: int32(3 + r.IntN(4))},
		DNS:        v1.NetworkDNS{Visibility: pick(r, v1.DNSNone, v1.DNSPrivate)},
	}
	if pick(r, true, false) {
		s.Zones = slices.Clone(zones[:1+r.IntN(len(zones))])
		r.Shuffle(len(s.Zones), func(i, j int) { s.Zones[i], s.Zones[j] = s.Zones[j], s.Zones[i] })
	}
	if pick(r, true, false) {
		s.CIDR.VPC = cidr([]string{"10.250.0.0", "172.16.0.0", "192.168.0.0"}, []int{16, 17, 18, 19, 20, 21, 22, 23}, 14, 15, 24)
	}
	if pick(r, true, false) {
		s.CIDR.Pods = cidr([]string{"100.64.0.0", "172.20.0.0"}, []int{11, 14, 16}, 10)
	}
	if pick(r, true, false) {
		s.CIDR.Services = cidr([]string{"100.104.0.0", "172.24.0.0"}, []int{13, 16, 20}, 10)
	}
	if pick(r, true, false) {
		s.GCP = &v1.GCPNetwork{PSCNATCIDR: cidr([]string{"10.252.0.0", "172.28.0.0"}, []int{16, 18, 20}, 15, 21)}
	}
	return s
}

// Whatever the plan accepts, Gardener takes: what is wrong with a Network is
// said when it is applied, not when its Shoot is made.
func TestAnyValidPlanGivesAShootWithNoFindings(t *testing.T) {
	const withSchema = 100
	for _, cloud := range []v1.Cloud{v1.CloudAWS, v1.CloudGCP} {
		t.Run(string(cloud), func(t *testing.T) {
			r := rand.New(rand.NewPCG(20260801, uint64(len(cloud))))
			accepted := 0
			for i := range *worlds {
				w := random(r, cloud)
				p, err := w.plan()
				if err != nil {
					continue
				}
				accepted++
				shoot, err := builders.Shoot(p)
				require.NoError(t, err, "world %d: %+v", i, w.network.Spec)
				require.Empty(t, shootrules.Check(shoot, p.Project), "world %d: %+v", i, w.network.Spec)
				require.Empty(t, shootrules.CheckUpdate(shoot, shoot.DeepCopy(), p.Project))
				if accepted <= withSchema {
					builders.RequireValid(t, "core.gardener.cloud_shoots.json", builders.Generic(t, shoot))
				}
			}
			t.Logf("%d of %d worlds have a valid plan", accepted, *worlds)
			require.Greater(t, accepted, *worlds/10, "too few of the worlds are valid to say anything")
		})
	}
}

// A Network of three zones or more can get another one: no subnet and no pool
// of the Shoot moves.
func TestAZoneCanBeAdded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	changed := 0
	for range 4_000 {
		w := random(r, v1.CloudAWS)
		w.network.Spec.Zones = w.pt.Spec.Regions[0].Zones
		p, err := w.plan()
		if err != nil || len(p.Zones) < 4 {
			continue
		}
		w.network.Spec.Zones = w.network.Spec.Zones[:len(p.Zones)-1]
		before, err := w.plan()
		require.NoError(t, err)
		old, err := builders.Shoot(before)
		require.NoError(t, err)
		now, err := builders.Shoot(p)
		require.NoError(t, err)
		require.Empty(t, shootrules.CheckUpdate(old, now, p.Project))
		changed++
	}
	require.Greater(t, changed, 200)
}
