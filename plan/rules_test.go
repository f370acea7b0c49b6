package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// refusal is one rule: the change breaks it, and the message says so. An empty
// message means that the change is fine.
type refusal struct {
	change func(*world)
	says   string
}

// refusals runs a plan over the samples with one change each.
func refusals(t *testing.T, plan func(*world, Options) error, cases map[string]refusal) {
	require.NoError(t, plan(samples(t).ready(), options), "the samples themselves")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := samples(t).ready()
			w.network.Status.CommonStatus = v1.CommonStatus{}
			c.change(w)
			err := plan(w, options)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.True(t, faults.Is(err, faults.Invalid), "class of %v", err)
			require.Contains(t, err.Error(), c.says)
		})
	}
}

func planProviderType(w *world, _ Options) error { return ProviderType(w.pt) }

func planProvider(w *world, o Options) error {
	_, err := Provider(w.provider, w.pt, w.account, o)
	return err
}

func planNetwork(w *world, o Options) error {
	_, err := Network(w.network, w.provider, w.pt, w.account, o)
	return err
}

func planCluster(w *world, o Options) error {
	_, err := Cluster(w.cluster, w.network, w.provider, w.pt, w.account, o)
	return err
}

func deleted() *metav1.Time { return &metav1.Time{Time: time.Unix(1, 0)} }

func TestProviderTypeRefusals(t *testing.T) {
	refusals(t, planProviderType, map[string]refusal{
		"label of another name": {func(w *world) { w.pt.Labels[v1.LabelProviderType] = "x" },
			`metadata.labels[cloud.pingcap.com/provider-type] "x": must be "aws-gardener", the name of the ProviderType; correct or remove the label`},
		"no label":             {func(w *world) { w.pt.Labels = nil }, ""},
		"GCP":                  {func(w *world) { w.pt.Spec.Cloud = v1.CloudGCP }, `spec.cloud "GCP": set it to AWS: cloud GCP is not supported yet`},
		"region without zones": {func(w *world) { w.pt.Spec.Regions[0].Zones = nil }, "region us-west-2 has no zone; name at least one"},
		"memory":               {func(w *world) { w.pt.Spec.MachineClasses[0].Memory = "much" }, `spec.machineClasses[0].memory "much": must be a quantity`},
		"no boot volume type":  {func(w *world) { w.pt.Spec.StorageClasses[0].Type = "io1" }, "one class must be of a type without provisioned IOPS"},
		"sizes": {func(w *world) { w.pt.Spec.StorageClasses[0].MinSize = "8Ti" },
			`spec.storageClasses[0].minSize "8Ti": must not be greater than maxSize, 4Ti`},
		"range":    {func(w *world) { w.pt.Spec.NetworkLimits.VPCCIDRs[0] = "10.0.0.1/8" }, `spec.networkLimits.vpcCIDRs[0] "10.0.0.1/8": must be an IPv4 range`},
		"prefixes": {func(w *world) { w.pt.Spec.NetworkLimits.MinPrefix = 24 }, "spec.networkLimits.minPrefix 24: must not be greater than maxPrefix, 23"},
		"timeout":  {func(w *world) { w.pt.Spec.Timeouts.Wake = "0m" }, `spec.timeouts.wake "0m": must be a positive time span`},
	})
}

func TestProviderRefusals(t *testing.T) {
	refusals(t, planProvider, map[string]refusal{
		"no AWS account": {func(w *world) { w.provider.Spec.AWS = nil },
			`spec.aws "": is required, as ProviderType aws-gardener is of cloud AWS; set spec.aws.accountID`},
		"GCP project":     {func(w *world) { w.provider.Spec.GCP = &v1.GCPProject{ProjectID: "core-prod"} }, `spec.gcp "core-prod": does not fit ProviderType aws-gardener of cloud AWS; remove it`},
		"no secret":       {func(w *world) { w.provider.Spec.Credentials.SecretRef = nil }, "spec.credentials.secretRef"},
		"default project": {func(w *world) { w.provider.Spec.Project = "" }, ""},
		"long project":    {func(w *world) { w.provider.Spec.Project = "abcdefghijk" }, "must have at most 10 characters"},
		"label":           {func(w *world) { w.provider.Labels = map[string]string{v1.LabelProviderType: "x"} }, `must be "aws-gardener", as spec.type`},
		"suspended":       {func(w *world) { w.account.Spec.Suspended = true }, `spec.account "acme": the Account is suspended`},
		"suspended later": {func(w *world) { w.account.Spec.Suspended = true; w.provider.Status.ObservedGeneration = 1 }, ""},
		"type goes":       {func(w *world) { w.pt.DeletionTimestamp = deleted() }, `spec.type "aws-gardener": the ProviderType is being deleted; choose another one`},
		"GCP type":        {func(w *world) { w.pt.Spec.Cloud = v1.CloudGCP }, "cloud GCP is not supported yet"},
	})
	w := samples(t)
	w.provider.Spec.Project = ""
	err := planProvider(w, Options{})
	require.ErrorContains(t, err, "spec.project")
	require.ErrorContains(t, err, "the controllers have no default project")
}

func TestNetworkRefusals(t *testing.T) {
	region := func(change func(*v1.Region)) func(*world) {
		return func(w *world) { change(&w.pt.Spec.Regions[0]) }
	}
	cidr := func(vpc, pods, services v1.CIDR) func(*world) {
		return func(w *world) { w.network.Spec.CIDR = v1.NetworkCIDR{VPC: vpc, Pods: pods, Services: services} }
	}
	window := func(begin, end string) func(*world) {
		return func(w *world) { w.network.Spec.MaintenanceWindow = v1.MaintenanceWindow{Begin: begin, End: end} }
	}
	fresh := func(change func(*world)) func(*world) {
		return func(w *world) { w.network.Status = v1.NetworkStatus{}; change(w) }
	}
	refusals(t, planNetwork, map[string]refusal{
		"unknown region": {func(w *world) { w.network.Spec.Region = "eu-west-9" },
			`spec.region "eu-west-9": ProviderType aws-gardener has no such region; choose one of us-west-2`},
		"deprecated region":       {region(func(r *v1.Region) { r.Deprecated = true }), "the region is deprecated for new Networks; choose another one"},
		"deprecated region later": {func(w *world) { w.pt.Spec.Regions[0].Deprecated = true; w.network.Status.ObservedGeneration = 1 }, ""},
		"unknown zone": {func(w *world) { w.network.Spec.Zones = []v1.ZoneName{"us-west-2a", "us-west-2z"} },
			`spec.zones "us-west-2z": region us-west-2 of ProviderType aws-gardener has no such zone; choose from us-west-2a, us-west-2b, us-west-2c`},
		"production in one zone": {func(w *world) {
			w.network.Spec.Purpose, w.network.Spec.Zones = "production", []v1.ZoneName{"us-west-2a"}
		},
			`spec.zones "us-west-2a": purpose production needs 3 zones; add zones or set another purpose`},
		"another Account": {func(w *world) { w.network.Spec.Account = "other" },
			`spec.account "other": must be the Account of Provider core-aws, acme; correct or remove it`},
		"the Account":         {func(w *world) { w.network.Spec.Account = "acme" }, ""},
		"label of a Provider": {func(w *world) { w.network.Labels = map[string]string{v1.LabelProvider: "x"} }, `must be "core-aws", as spec.provider`},

		"VPC overlaps Pods": {cidr("172.16.0.0/16", "172.16.0.0/12", "100.104.0.0/13"),
			`spec.cidr.pods "172.16.0.0/12": must not overlap spec.cidr.vpc, 172.16.0.0/16; choose another range`},
		"Pods overlap Services": {cidr("10.250.0.0/16", "100.64.0.0/10", "100.104.0.0/13"), `spec.cidr.services "100.104.0.0/13": must not overlap spec.cidr.pods`},
		"not canonical":         {cidr("10.250.0.1/16", "100.64.0.0/11", "100.104.0.0/13"), `spec.cidr.vpc "10.250.0.1/16": must be an IPv4 range`},
		"too large":             {cidr("172.16.0.0/15", "100.64.0.0/11", "100.104.0.0/13"), "the prefix length must be between /16 and /23"},
		"too small":             {cidr("172.16.0.0/24", "100.64.0.0/11", "100.104.0.0/13"), "the prefix length must be between /16 and /23"},
		"smallest":              {cidr("192.168.2.0/23", "100.64.0.0/11", "100.104.0.0/13"), ""},
		"outside of the limits": {cidr("10.0.0.0/16", "100.64.0.0/11", "100.104.0.0/13"),
			"must lie in one of the ranges of ProviderType aws-gardener: 10.250.0.0/15, 172.16.0.0/12, 192.168.0.0/16"},

		"window too short": {window("220000+0000", "221500+0000"), "the window is 15m0s long; it must be between 30m and 6h"},
		"window too long":  {window("220000+0000", "050000+0000"), "the window is 7h0m0s long"},
		"window of zones":  {window("220000+0000", "003000+0100"), ""},

		"unknown machine class": {func(w *world) { w.network.Spec.SystemPool.MachineClass = "1C1G" },
			`spec.systemPool.machineClass "1C1G": ProviderType aws-gardener has no such machine class; choose one of 2C8G, 4C16G, 8C32G`},
		"fewer nodes than zones": {func(w *world) { w.network.Spec.SystemPool.Maximum = 2 }, "spec.systemPool.maximum 2: must be at least the number of its zones, 3"},
		"long names": {fresh(func(w *world) { w.network.Spec.ShootName, w.provider.Spec.Project = "abcdefghijkl", "abcdefghij" }),
			`spec.shootName "abcdefghijkl": has 12 characters and project abcdefghij has 10; Gardener allows 21 together; choose a shorter name`},
		"no domain": {func(w *world) { w.provider.Spec.DNS = nil },
			"Provider core-aws has no spec.dns.domain; set visibility to None, or use a Provider with a domain"},
		"no zone wanted": {func(w *world) { w.provider.Spec.DNS = nil; w.network.Spec.DNS.Visibility = v1.DNSNone }, ""},
		"suspended":      {func(w *world) { w.account.Spec.Suspended = true }, `spec.provider "core-aws": its Account acme is suspended`},
		"Provider goes":  {func(w *world) { w.provider.DeletionTimestamp = deleted() }, "the Provider is being deleted; choose another one"},
		"quota":          {func(w *world) { w.account.Spec.Quotas.Networks = new(int32) }, `metadata.name "n1": Account acme may have 0 Networks and has 0 already`},
		"GCP":            {func(w *world) { w.pt.Spec.Cloud = v1.CloudGCP }, "cloud GCP is not supported yet"},
	})
}

func TestClusterRefusals(t *testing.T) {
	flash := func(class v1.ClassName, replicas int32) func(*world) {
		return func(w *world) {
			w.cluster.Spec.Topology.TiDB.MachineClass, w.cluster.Spec.Topology.TiKV.MachineClass = "8C32G", "8C32G"
			w.cluster.Spec.Topology.TiFlash = &v1.TiFlashTopology{Replicas: replicas, MachineClass: class, Storage: v1.Storage{Size: "200Gi", Class: "Standard"}}
		}
	}
	tikv := func(size v1.StorageSize, class v1.ClassName) func(*world) {
		return func(w *world) { w.cluster.Spec.Topology.TiKV.Storage = v1.Storage{Size: size, Class: class} }
	}
	customer := func(arn string) func(*world) {
		return func(w *world) {
			w.cluster.Spec.Encryption = v1.Encryption{Mode: v1.EncryptionCustomer, CustomerKeyARN: arn}
		}
	}
	refusals(t, planCluster, map[string]refusal{
		"unknown machine class": {func(w *world) { w.cluster.Spec.Topology.TiKV.MachineClass = "9C9G" },
			`spec.topology.tikv.machineClass "9C9G": ProviderType aws-gardener has no such machine class; for TiKV choose one of 4C16G, 8C32G`},
		"class of others": {func(w *world) { w.cluster.Spec.Topology.TiKV.MachineClass = "2C8G" },
			`spec.topology.tikv.machineClass "2C8G": machine class 2C8G of ProviderType aws-gardener is not for TiKV; choose one of 4C16G, 8C32G`},
		"unknown storage class": {tikv("200Gi", "Fast"), `spec.topology.tikv.storage.class "Fast": ProviderType aws-gardener has no such storage class; choose one of Standard`},
		"too little storage":    {tikv("199Gi", "Standard"), `spec.topology.tikv.storage.size "199Gi": storage class Standard begins at 200Gi`},
		"too much storage":      {tikv("5Ti", "Standard"), "storage class Standard ends at 4Ti"},
		"the most storage":      {tikv("4096Gi", "Standard"), ""},
		"no quantity":           {tikv("lots", "Standard"), "must be a quantity such as 500Gi"},
		"PD may be small":       {func(w *world) { w.cluster.Spec.Topology.PD.Storage.Size = "10Gi" }, ""},
		"PD not too large":      {func(w *world) { w.cluster.Spec.Topology.PD.Storage.Size = "5Ti" }, "spec.topology.pd.storage.size"},
		"small TiDB": {func(w *world) { w.cluster.Spec.Topology.TiKV.MachineClass = "8C32G" },
			"TiDB of 4 vCPU goes with TiKV of at most 4 vCPU, and TiKV has 8; choose a larger class for TiDB or a smaller one for TiKV"},
		"small TiKV":            {func(w *world) { w.cluster.Spec.Topology.TiDB.MachineClass = "8C32G" }, ""},
		"TiFlash":               {flash("8C32G", 1), ""},
		"TiFlash class":         {flash("4C16G", 1), "machine class 4C16G of ProviderType aws-gardener is not for TiFlash; choose one of 8C32G"},
		"no TiFlash, any class": {flash("none", 0), ""},
		"TiFlash with small TiKV": {func(w *world) { flash("8C32G", 1)(w); w.cluster.Spec.Topology.TiKV.MachineClass = "4C16G" },
			"spec.topology.tiflash.replicas 1: TiFlash is not possible with TiKV of 4 vCPU; set replicas to 0 or choose a larger class for TiKV"},
		"key of another region":   {customer("arn:aws:kms:eu-west-1:123456789012:key/1"), "must be the ARN of a KMS key in the Network's region, us-west-2"},
		"key":                     {customer("arn:aws:kms:us-west-2:123456789012:key/1"), ""},
		"no key":                  {customer(""), "must be the ARN of a KMS key"},
		"suspended":               {func(w *world) { w.account.Spec.Suspended = true }, `spec.network "n1": its Account acme is suspended`},
		"suspended later":         {func(w *world) { w.account.Spec.Suspended = true; w.cluster.Status.ObservedGeneration = 1 }, ""},
		"Network goes":            {func(w *world) { w.network.DeletionTimestamp = deleted() }, `spec.network "n1": the Network is being deleted; choose another one`},
		"Network sleeps for good": {func(w *world) { w.network.Spec.Hibernation = &v1.HibernationPolicy{Mode: v1.HibernationAlways} }, "the Network hibernates for good"},
		"quota of Clusters":       {func(w *world) { w.account.Spec.Quotas.Clusters = new(int32) }, "may have 0 Clusters and has 0 already"},
		"quota of nodes":          {func(w *world) { *w.account.Spec.Quotas.TiKVNodes = 2 }, "spec.topology.tikv.replicas 3: Account acme may have 2 TiKV nodes and has 0 already; remove some or raise the Account's quota"},
		"label of a Network":      {func(w *world) { w.cluster.Labels = map[string]string{v1.LabelNetwork: "x"} }, `must be "n1", as spec.network`},
	})
}

func TestAllProblemsAtOnce(t *testing.T) {
	w := samples(t)
	w.network.Spec.Region = "eu-west-9"
	w.network.Spec.Zones = []v1.ZoneName{"us-west-2a", "us-west-2b", "us-west-2c"}
	w.network.Spec.CIDR.VPC = "10.0.0.0/8"
	w.account.Spec.Suspended = true
	_, err := Network(w.network, w.provider, w.pt, w.account, options)
	f := faults.As(err)
	require.NotNil(t, f)
	require.Equal(t, "InvalidSpec", f.Code)
	require.Equal(t, "Network/infra/n1", f.Resource)
	require.Equal(t, faults.OwnerUser, f.Owner)
	require.True(t, strings.HasPrefix(f.Message, "4 problems; (1) spec.region"), f.Message)
	for _, path := range []string{"(2) spec.cidr.vpc", "(3) spec.cidr.vpc", "(4) spec.provider"} {
		require.Contains(t, f.Message, path)
	}
}

func TestMessagesStayBelowOnePage(t *testing.T) {
	var p problems
	for range 40 {
		p.add("spec.zones", "us-west-2z", "region us-west-2 has no such zone; choose from us-west-2a")
	}
	err := p.fault("Network", samples(t).network)
	require.ErrorContains(t, err, "40 problems; (1) ")
	require.ErrorContains(t, err, "; and 25 more")
	require.Less(t, len(err.Error()), 2000)
}

func TestChoicesAreBounded(t *testing.T) {
	var names []v1.ClassName
	for i := range 64 {
		names = append(names, v1.ClassName(fmt.Sprintf("c%02d", i)))
	}
	require.Equal(t, "none", choices(names[:0]))
	require.Equal(t, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09", choices(names[:10]))
	require.Equal(t, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 54 more", choices(names))
}
