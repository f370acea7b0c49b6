package builders

import (
	"encoding/json"
	"net/netip"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

func networkPlan() contract.NetworkPlan {
	return contract.NetworkPlan{
		Ref:     contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1", ID: "0123456789abcdef"},
		Account: contract.CloudAccount{Namespace: "infra", Provider: "core-aws", AccountID: "123456789012", Region: "us-west-2"},
		Cloud:   "AWS", Tenant: "acme", Env: "dev", Project: "core",
		Shoot:           contract.ShootRef{Namespace: "garden-core", Name: "n-3f9ac21"},
		CredentialsKind: "CredentialsBinding", BindingName: "core-aws-89abcdef",
		CloudProfileKind: "CloudProfile", CloudProfile: "aws", NetworkingType: "calico",
		Region: "us-west-2", Zones: []string{"us-west-2a", "us-west-2b", "us-west-2c"},
		VPCCIDR: "10.250.0.0/16", PodsCIDR: "100.64.0.0/11", ServicesCIDR: "100.104.0.0/13",
		KubernetesVersion: "1.33", Purpose: "production", WindowBegin: "220000+0000", WindowEnd: "230000+0000",
		SystemPool: contract.MachinePool{
			Name: "system", MachineType: "m5.xlarge", Minimum: 2, Maximum: 3,
			Zones: []string{"us-west-2a", "us-west-2b", "us-west-2c"}, VolumeType: "gp3", VolumeSize: "50Gi",
		},
	}
}

func TestShootFitsTheSchema(t *testing.T) {
	shoot, err := Shoot(networkPlan())
	require.NoError(t, err)
	requireValid(t, "core.gardener.cloud_shoots.json", generic(t, shoot))
	require.Equal(t, "0123456789abcdef", shoot.Labels["infra.cloud.pingcap.com/id"])
	require.Equal(t, "managed", shoot.Annotations["authentication.gardener.cloud/issuer"])
	require.Equal(t, "core-aws-89abcdef", *shoot.Spec.CredentialsBindingName)
	require.Nil(t, shoot.Spec.SecretBindingName)

	var infra AWSInfrastructureConfig
	require.NoError(t, json.Unmarshal(shoot.Spec.Provider.InfrastructureConfig.Raw, &infra))
	require.Equal(t, "10.250.0.0/16", *infra.Networks.VPC.CIDR)
	require.Len(t, infra.Networks.Zones, 3)
}

func TestShootVariants(t *testing.T) {
	p := networkPlan()
	p.ExistingVPC, p.CredentialsKind, p.SeedName = "vpc-0a1b", "SecretBinding", "aws-us-west-2-a"
	shoot, err := Shoot(p)
	require.NoError(t, err)
	requireValid(t, "core.gardener.cloud_shoots.json", generic(t, shoot))
	require.Nil(t, shoot.Spec.CredentialsBindingName)
	var infra AWSInfrastructureConfig
	require.NoError(t, json.Unmarshal(shoot.Spec.Provider.InfrastructureConfig.Raw, &infra))
	require.Equal(t, "vpc-0a1b", *infra.Networks.VPC.ID)
	require.Nil(t, infra.Networks.VPC.CIDR)

	p.Cloud = "GCP"
	_, err = Shoot(p)
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
}

func TestBindingsFitTheSchema(t *testing.T) {
	p := networkPlan()
	requireValid(t, "security.gardener.cloud_credentialsbindings.json", generic(t, CredentialsBinding(p)))
	p.CredentialsKind = "SecretBinding"
	requireValid(t, "core.gardener.cloud_secretbindings.json", generic(t, CredentialsBinding(p)))
	secret := CredentialsSecret(p, "id", "key")
	require.Equal(t, p.BindingName, secret.Name)
	require.Equal(t, "infra/core-aws", secret.Annotations[AnnotationProvider])
}

func TestDedicatedPool(t *testing.T) {
	w, err := WorkerPool(contract.MachinePool{
		Name: "kv-012345-a", MachineType: "m5.2xlarge", Minimum: 1, Maximum: 1, Zones: []string{"us-west-2a"},
		VolumeType: "gp3", VolumeSize: "50Gi", Labels: map[string]string{contract.LabelPoolOwner: "0123"}, Dedicated: "tikv",
	})
	require.NoError(t, err)
	require.False(t, w.SystemComponents.Allow)
	require.Equal(t, "tikv", w.Taints[0].Value)
	require.Equal(t, map[string]string{contract.LabelPoolOwner: "0123", "dedicated": "tikv"}, w.Labels)

	_, err = WorkerPool(contract.MachinePool{Name: "x", VolumeType: "io1"})
	require.True(t, faults.Is(err, faults.Invalid))
}

// R1: a blob of another cloud is refused before anything is sent.
func TestAForeignBlobIsRefused(t *testing.T) {
	_, err := encode("gcp", awsControlPlane())
	require.True(t, faults.Is(err, faults.Invalid))

	shoot, err := Shoot(networkPlan())
	require.NoError(t, err)
	shoot.Spec.Provider.InfrastructureConfig = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"gcp.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig"}`)}
	err = CheckShoot(shoot, "core")
	require.ErrorContains(t, err, "not a InfrastructureConfig for aws")
}

func TestCheckShoot(t *testing.T) {
	for _, tc := range []struct {
		name   string
		break_ func(*gardencorev1beta1.Shoot)
		says   string
	}{
		{"long name", func(s *gardencorev1beta1.Shoot) { s.Name = "a-name-of-eighteen" }, "at most 21"},
		{"no label", func(s *gardencorev1beta1.Shoot) { s.Name = "A--b" }, "DNS label"},
		{"namespace", func(s *gardencorev1beta1.Shoot) { s.Namespace = "infra" }, "garden-"},
		{"two bindings", func(s *gardencorev1beta1.Shoot) { s.Spec.SecretBindingName = new("x") }, "exactly one of credentialsBindingName"},
		{"secret binding on 1.34", func(s *gardencorev1beta1.Shoot) {
			s.Spec.SecretBindingName, s.Spec.CredentialsBindingName, s.Spec.Kubernetes.Version = new("x"), nil, "1.34.1"
		}, "forbidden from Kubernetes 1.34"},
		{"purpose", func(s *gardencorev1beta1.Shoot) { s.Spec.Purpose = new(gardencorev1beta1.ShootPurpose("prod")) }, "purpose"},
		{"window", func(s *gardencorev1beta1.Shoot) { s.Spec.Maintenance.TimeWindow.Begin = "22:00" }, "maintenance window"},
		{"confined", func(s *gardencorev1beta1.Shoot) { s.Spec.Maintenance.ConfineSpecUpdateRollout = new(true) }, "confineSpecUpdateRollout"},
		{"pool name", func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].Name = "a-pool-name-too-long" }, "at most 15"},
		{"max below min", func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].Maximum = 1 }, "maximum"},
		{"no surge", func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].MaxSurge = new(intstr.FromInt32(0)) }, "maxSurge"},
		{"zone elsewhere", func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].Zones = []string{"us-west-2d"} }, "us-west-2d"},
		{"volume", func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].Volume.VolumeSize = "lots" }, "no quantity"},
		{"no system pool", func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].SystemComponents.Allow = false }, "system components"},
		{"twice", func(s *gardencorev1beta1.Shoot) {
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, s.Spec.Provider.Workers[0])
		}, "two of that name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			shoot, err := Shoot(networkPlan())
			require.NoError(t, err)
			tc.break_(shoot)
			err = CheckShoot(shoot, "core")
			require.True(t, faults.Is(err, faults.Invalid))
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func TestCarveSubnets(t *testing.T) {
	zones := []string{"a", "b", "c", "d", "e", "f"}
	got, err := CarveSubnets("10.250.0.0/16", zones[:2])
	require.NoError(t, err)
	require.Equal(t, []ZoneSubnets{
		{"a", "10.250.0.0/19", "10.250.192.0/22", "10.250.224.0/22"},
		{"b", "10.250.32.0/19", "10.250.196.0/22", "10.250.228.0/22"},
	}, got)
	got, err = CarveSubnets("192.168.4.0/23", zones[:1])
	require.NoError(t, err)
	require.Equal(t, []ZoneSubnets{{"a", "192.168.4.0/26", "192.168.4.64/27", "192.168.4.96/27"}}, got)

	for _, cidr := range []string{"10.250.0.0/16", "10.251.128.0/17", "172.16.0.0/20", "172.31.252.0/22", "192.168.0.0/23"} {
		most := 6
		if cidr == "192.168.0.0/23" {
			most = 4
		}
		all, err := CarveSubnets(cidr, zones[:most])
		require.NoError(t, err)
		vpc, seen := netip.MustParsePrefix(cidr), []netip.Prefix{}
		for n := 1; n <= most; n++ { // appending a zone moves none
			some, err := CarveSubnets(cidr, zones[:n])
			require.NoError(t, err)
			require.Equal(t, all[:n], some)
		}
		for _, z := range all {
			for _, s := range []string{z.Workers, z.Public, z.Internal} {
				p := netip.MustParsePrefix(s)
				require.Equal(t, p.Masked(), p)
				require.LessOrEqual(t, p.Bits(), 28, "AWS has no smaller subnets")
				require.True(t, vpc.Contains(p.Addr()))
				for _, other := range seen {
					require.False(t, p.Overlaps(other), "%s and %s", p, other)
				}
				seen = append(seen, p)
			}
		}
	}
	for _, bad := range []struct {
		cidr  string
		zones int
	}{{"10.250.0.0/15", 3}, {"10.250.0.0/24", 1}, {"10.250.0.1/16", 3}, {"fd00::/16", 3}, {"x", 1}, {"10.250.0.0/16", 0}, {"10.250.0.0/23", 5}} {
		_, err := CarveSubnets(bad.cidr, zones[:bad.zones])
		require.True(t, faults.Is(err, faults.Invalid), "%v", bad)
	}
}
