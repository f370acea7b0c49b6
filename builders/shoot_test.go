package builders

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	"github.com/stretchr/testify/require"

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

	p.Cloud = "Azure"
	_, err = Shoot(p)
	require.True(t, faults.Is(err, faults.Invalid), "%v", err)
}

func gcpNetworkPlan() contract.NetworkPlan {
	zones := []string{"us-central1-a", "us-central1-b", "us-central1-c"}
	p := networkPlan()
	p.Account = contract.CloudAccount{Namespace: "infra", Provider: "core-gcp", ProjectID: "core-prod", Region: "us-central1"}
	p.Cloud, p.Region, p.Zones, p.CloudProfile, p.BindingName = "GCP", "us-central1", zones, "gcp", "core-gcp-89abcdef"
	p.SystemPool = contract.MachinePool{
		Name: "system", MachineType: "n2-standard-4", Minimum: 3, Maximum: 3, Zones: zones, VolumeType: "pd-balanced", VolumeSize: "50Gi",
	}
	p.GCP = &contract.GCPNetworkPlan{PSCNATCIDR: "10.251.0.0/20", PSCConnections: 7}
	return p
}

func TestGCPShoot(t *testing.T) {
	shoot, err := Shoot(gcpNetworkPlan())
	require.NoError(t, err)
	require.Equal(t, "gcp", shoot.Spec.Provider.Type)
	var infra GCPInfrastructureConfig
	require.NoError(t, json.Unmarshal(shoot.Spec.Provider.InfrastructureConfig.Raw, &infra))
	require.Equal(t, GCPAPIVersion, infra.APIVersion)
	require.Equal(t, "10.250.0.0/16", infra.Networks.Workers)
	require.Nil(t, infra.Networks.VPC)
	var control GCPControlPlaneConfig
	require.NoError(t, json.Unmarshal(shoot.Spec.Provider.ControlPlaneConfig.Raw, &control))
	require.Equal(t, "us-central1-a", control.Zone)
	require.Nil(t, shoot.Spec.Provider.Workers[0].Volume.Encrypted, "disks on GCP always are")

	p := gcpNetworkPlan()
	p.GCP = nil
	_, err = Shoot(p)
	require.ErrorContains(t, err, "no GCP part")
	p = gcpNetworkPlan()
	p.SystemPool.Zones = nil
	_, err = Shoot(p)
	require.ErrorContains(t, err, "no zone")
}

func TestGCPCredentials(t *testing.T) {
	const good = `{"type":"service_account","project_id":"core-prod","client_email":"ic@core-prod.iam.gserviceaccount.com","private_key":"s3cret"}`
	secret, err := GCPCredentialsSecret(gcpNetworkPlan(), []byte(good))
	require.NoError(t, err)
	require.Equal(t, good, string(secret.Data["serviceaccount.json"]))
	for says, bad := range map[string]string{
		"is no JSON":            "s3cret",
		"has type":              strings.Replace(good, "service_account", "authorized_user", 1),
		"is of project":         strings.Replace(good, "core-prod", "other", 1),
		"lacks client_email":    strings.Replace(good, "client_email", "email", 1),
		"or private_key":        strings.Replace(good, "private_key", "key", 1),
		"service account there": "[]",
	} {
		_, err := GCPCredentialsSecret(gcpNetworkPlan(), []byte(bad))
		require.True(t, faults.Is(err, faults.Invalid))
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestBindingsFitTheSchema(t *testing.T) {
	p := networkPlan()
	requireValid(t, "security.gardener.cloud_credentialsbindings.json", generic(t, CredentialsBinding(p)))
	p.CredentialsKind = "SecretBinding"
	requireValid(t, "core.gardener.cloud_secretbindings.json", generic(t, CredentialsBinding(p)))
	p = gcpNetworkPlan()
	require.Equal(t, "gcp", CredentialsBinding(p).(*securityv1alpha1.CredentialsBinding).Provider.Type)
	p = networkPlan()
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

	w, err = GCPWorkerPool(contract.MachinePool{Name: "kv-012345-a", Dedicated: "tikv"}, "nodes@core-prod.iam.gserviceaccount.com")
	require.NoError(t, err)
	var config GCPWorkerConfig
	require.NoError(t, json.Unmarshal(w.ProviderConfig.Raw, &config))
	require.Equal(t, GCPAPIVersion, config.APIVersion)
	require.Equal(t, "nodes@core-prod.iam.gserviceaccount.com", config.ServiceAccount.Email)
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
