package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// onGCP makes the samples a world on GCP. The schema refuses it so far, so the
// samples themselves are on AWS.
func (w *world) onGCP() *world {
	w.pt.Name, w.pt.Spec.Cloud = "gcp-gardener", v1.CloudGCP
	w.pt.Labels = nil
	w.pt.Spec.Gardener.CloudProfile.Name = "gcp"
	w.pt.Spec.Regions = []v1.Region{{Name: "us-central1", Zones: []v1.ZoneName{"us-central1-a", "us-central1-b", "us-central1-c"}}}
	for i := range w.pt.Spec.StorageClasses {
		w.pt.Spec.StorageClasses[i].Type = "pd-ssd"
	}
	w.provider.Spec.Type, w.provider.Spec.AWS, w.provider.Spec.GCP = "gcp-gardener", nil, &v1.GCPProject{ProjectID: "core-prod"}
	w.provider.Labels, w.network.Labels = nil, nil
	w.network.Spec.Region, w.network.Spec.Zones = "us-central1", nil
	w.network.Status = v1.NetworkStatus{}
	return w
}

func TestGCPNetwork(t *testing.T) {
	w := samples(t).onGCP()
	plan, err := GCPNetwork(w.network, w.provider, w.pt, w.account, options)
	require.NoError(t, err)
	require.Equal(t, "GCP", plan.Cloud)
	require.Equal(t, contract.CloudAccount{Namespace: "infra", Provider: w.provider.Name, ProjectID: "core-prod", Region: "us-central1"}, plan.Account)
	require.Equal(t, &contract.GCPNetworkPlan{PSCNATCIDR: "10.251.0.0/20", PSCConnections: 7}, plan.GCP)
	require.Equal(t, "ic-01234567-a095e7-data", plan.BucketName) // printf core-prod | sha256sum
	require.Equal(t, "pd-ssd", plan.SystemPool.VolumeType)
	require.Equal(t, []string{"us-central1-a", "us-central1-b", "us-central1-c"}, plan.Zones)

	w.network.Spec.GCP = &v1.GCPNetwork{PSCNATCIDR: "172.16.0.0/18"}
	plan, err = GCPNetwork(w.network, w.provider, w.pt, w.account, options)
	require.NoError(t, err)
	require.Equal(t, &contract.GCPNetworkPlan{PSCNATCIDR: "172.16.0.0/18", PSCConnections: 55}, plan.GCP)

	_, err = Network(w.network, w.provider, w.pt, w.account, options)
	require.ErrorContains(t, err, "cloud GCP is not supported yet", "until its lifecycle exists")
}

func TestPSCConnections(t *testing.T) {
	for cidr, want := range map[v1.CIDR]int32{
		"10.0.0.0/20": 7, "10.0.0.0/19": 23, "10.0.0.0/18": 55, "10.0.0.0/17": 119, "10.0.0.0/16": 247,
		"10.0.0.0/15": 0, "10.0.0.0/21": 0, "10.0.0.1/20": 0, "x": 0,
	} {
		require.Equal(t, want, PSCConnections(cidr), cidr)
	}
}

func TestGCPNetworkRefusals(t *testing.T) {
	nat := func(c v1.CIDR) func(*world) {
		return func(w *world) { w.network.Spec.GCP = &v1.GCPNetwork{PSCNATCIDR: c} }
	}
	vpc := func(c v1.CIDR) func(*world) { return func(w *world) { w.network.Spec.CIDR.VPC = c } }
	for name, c := range map[string]refusal{
		"nothing":       {func(*world) {}, ""},
		"another cloud": {func(w *world) { w.pt.Spec.Cloud = v1.CloudAWS }, `is of ProviderType gcp-gardener, which is of cloud AWS; choose a Provider on GCP`},
		"no project":    {func(w *world) { w.provider.Spec.GCP = nil }, "names no GCP project; set its spec.gcp.projectID"},
		"account":       {func(w *world) { w.network.Spec.Account = "other" }, `spec.account "other": must be the Account of Provider`},
		"label":         {func(w *world) { w.network.Labels = map[string]string{v1.LabelProviderType: "x"} }, `must be "gcp-gardener"`},
		"existing network": {func(w *world) { w.network.Spec.ExistingVPC = &v1.ExistingVPC{Name: "shared"} },
			`spec.existingVPC "shared": Gardener needs the network's Cloud Router`},
		"no disk for nodes": {func(w *world) {
			for i := range w.pt.Spec.StorageClasses {
				w.pt.Spec.StorageClasses[i].Type = "hyperdisk-balanced"
			}
		}, "ProviderType gcp-gardener has no storage class of type pd-standard, pd-balanced or pd-ssd"},

		"NAT range":            {nat("10.251.0.1/20"), `spec.gcp.pscNATCIDR "10.251.0.1/20": must be an IPv4 range`},
		"NAT range too large":  {nat("10.252.0.0/15"), `spec.gcp.pscNATCIDR "10.252.0.0/15": the prefix length must be between /16 and /20, for 247 to 7 connections`},
		"NAT range too small":  {nat("10.251.0.0/21"), "the prefix length must be between /16 and /20"},
		"largest NAT range":    {nat("10.251.0.0/16"), ""},
		"NAT in the nodes":     {nat("10.250.16.0/20"), `spec.gcp.pscNATCIDR "10.250.16.0/20": must not overlap spec.cidr.vpc, 10.250.0.0/16; choose another range`},
		"NAT in the pods":      {nat("100.64.0.0/20"), "must not overlap spec.cidr.pods, 100.64.0.0/11"},
		"default NAT in a /15": {vpc("10.250.0.0/15"), `spec.gcp.pscNATCIDR "10.251.0.0/20": must not overlap spec.cidr.vpc, 10.250.0.0/15`},
		"nodes elsewhere":      {vpc("10.0.0.0/16"), `spec.cidr.vpc "10.0.0.0/16": must lie in one of the ranges of ProviderType gcp-gardener`},
		"nodes too few":        {vpc("10.250.0.0/24"), `spec.cidr.vpc "10.250.0.0/24": the prefix length must be between /16 and /23`},
		"small subnet":         {func(w *world) { w.network.Spec.CIDR.VPC, w.pt.Spec.NetworkLimits.MaxPrefix = "10.250.0.0/26", 26 }, ""},
		"subnet below a /29":   {func(w *world) { w.network.Spec.CIDR.VPC, w.pt.Spec.NetworkLimits.MaxPrefix = "10.250.0.0/30", 32 }, "must be between /16 and /29"},
		"pods in nodes":        {func(w *world) { w.network.Spec.CIDR.Pods = "10.250.0.0/20" }, `spec.cidr.pods "10.250.0.0/20": must not overlap spec.cidr.vpc`},
		"unknown zone":         {func(w *world) { w.network.Spec.Zones = []v1.ZoneName{"us-central1-z"} }, "has no such zone"},
		"window":               {func(w *world) { w.network.Spec.MaintenanceWindow.End = "221000+0000" }, "it must be between 30m and 6h"},
		"system pool":          {func(w *world) { w.network.Spec.SystemPool.Maximum = 2 }, "must be at least the number of its zones, 3"},
		"suspended account":    {func(w *world) { w.account.Spec.Suspended = true }, "its Account acme is suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			w := samples(t).onGCP()
			c.change(w)
			_, err := GCPNetwork(w.network, w.provider, w.pt, w.account, options)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.True(t, faults.Is(err, faults.Invalid), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
	w := samples(t).onGCP()
	w.network.DeletionTimestamp, w.network.Spec.CIDR.VPC, w.provider.Spec.GCP = deleted(), "x", nil
	_, err := GCPNetwork(w.network, w.provider, w.pt, nil, options)
	require.NoError(t, err, "what is being deleted is not judged")
}

// What Gardener would refuse although the schema admits it.
func TestGardenerRefusals(t *testing.T) {
	version := func(v v1.KubernetesVersion, kind string) func(*world) {
		return func(w *world) { w.network.Spec.KubernetesVersion, w.pt.Spec.Gardener.CredentialsKind = v, kind }
	}
	refusals(t, planNetwork, map[string]refusal{
		"two dashes":                {func(w *world) { w.network.Spec.ShootName = "a--b" }, `spec.shootName "a--b": Gardener allows no two dashes in a row; remove one`},
		"two dashes of the project": {func(w *world) { w.provider.Spec.Project = "co--re" }, "its Gardener project co--re has two dashes in a row"},
		"version":                   {version("1.31.4", ""), `spec.kubernetesVersion "1.31.4": Gardener runs 1.32 to 1.36; choose one of these`},
		"newer version":             {version("1.37", ""), "Gardener runs 1.32 to 1.36"},
		"oldest":                    {version("1.32", ""), ""},
		"newest":                    {version("1.36.2", ""), ""},
		"the type's version":        {func(w *world) { w.network.Spec.KubernetesVersion, w.pt.Spec.Gardener.KubernetesVersion = "", "1.30" }, `"1.30": Gardener runs`},
		"SecretBinding too new":     {version("1.34", "SecretBinding"), "binds credentials with SecretBindings, which end with Kubernetes 1.33"},
		"SecretBinding":             {version("1.33.9", "SecretBinding"), ""},
		"no disk for nodes": {func(w *world) {
			for i := range w.pt.Spec.StorageClasses {
				w.pt.Spec.StorageClasses[i].Type = "io1"
			}
		}, `spec.provider "core-aws": ProviderType aws-gardener has no storage class of type gp2 or gp3 for the nodes' own disks; add one there`},
		"a version of old": {func(w *world) {
			version("1.31", "")(w)
			w.network.Status.ObservedGeneration = 1
		}, ""},
	})
}
