package plan

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const (
	operatorV1 = "V1"
	// smallVCPU is the size of machine that TiFlash cannot be combined with.
	smallVCPU = 4
)

// Cluster validates a Cluster against its references and resolves every
// default. A Network that has not published what the Cluster needs is a
// Dependency fault. The account may be nil while the Cluster is being deleted.
func Cluster(c *v1.Cluster, n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, account *v1.Account, o Options) (contract.ClusterPlan, error) {
	ref, err := refOf(v1.KindCluster, c)
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	networkRef, err := refOf(v1.KindNetwork, n)
	if err != nil {
		return contract.ClusterPlan{}, err
	}
	spec := defaultedCluster(c)
	zones := firstZones(networkZones(n, pt))
	wanted := wantedComponents(spec.Topology)

	p := problems{list: slices.Concat(o.Problems, CheckCluster(c, n, provider, pt))}
	if creating(c) {
		p.list = append(p.list, CheckNewCluster(c, n, account, o)...)
	}
	p.merge(checkNetworkFacts(n, provider))

	plan := buildCluster(c, spec, ref, networkRef, n, provider, pt, o)
	for _, w := range wanted {
		if w.replicas > 0 {
			plan.Components = append(plan.Components, w.component(ref, zones, pt))
		}
	}
	return plan, p.fault(v1.KindCluster, c)
}

// CheckCluster holds the rules for every Cluster.
func CheckCluster(c *v1.Cluster, n *v1.Network, provider *v1.Provider, pt *v1.ProviderType) []Problem {
	spec := defaultedCluster(c)
	wanted := wantedComponents(spec.Topology)
	var p problems
	p.merge(checkClusterReferences(c, n, provider, pt))
	p.merge(checkComponents(wanted, pt))
	p.merge(checkSizes(wanted, pt))
	p.merge(checkKey(spec.Encryption, n))
	p.merge(checkPausePolicy(spec.PausePolicy, pt))
	return p.list
}

func buildCluster(c *v1.Cluster, spec v1.ClusterSpec, ref, networkRef contract.ObjectRef, n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, o Options) contract.ClusterPlan {
	account := cloudAccount(contract.ObjectRef{Namespace: provider.Namespace, Name: provider.Name}, provider)
	account.Region = string(n.Spec.Region)
	plan := contract.ClusterPlan{
		Ref: ref, Generation: c.Generation, Account: account,
		Cloud: string(pt.Spec.Cloud), Tenant: string(provider.Spec.Account), Env: o.Env,
		Network: networkRef, Shoot: shootRef(n, provider, o),
		Zones: plain(networkZones(n, pt)), BucketName: bucketName(networkRef, account.AccountID),

		Operator: spec.Operator, Version: spec.Version,
		Namespace: clusterNamespace(ref), Name: tidbClusterName, Port: spec.Port,
		EncryptionMode: string(spec.Encryption.Mode), CustomerKeyID: spec.Encryption.CustomerKeyARN, RoleName: roleName(ref),

		Public: spec.Endpoints.Public.Enabled, PublicCIDRs: plain(spec.Endpoints.Public.AllowCIDRs),
		Private: enabled(spec.Endpoints.Private.Enabled), AllowedPrincipals: plain(spec.Endpoints.Private.AllowedPrincipals),

		BackupSchedule: string(spec.BackupPolicy.Schedule), BackupTimeUTC: spec.BackupPolicy.TimeUTC,
		BackupRetainDays: spec.BackupPolicy.RetentionDays, RetainBackups: enabled(spec.RetainBackups),

		ClusterCreateTimeout: seconds(pt.Spec.Timeouts.ClusterCreate, defaultClusterCreate),
	}
	if spec.RootPasswordSecretRef != nil {
		plan.RootPasswordSecret = spec.RootPasswordSecretRef.Name
	}
	if spec.Encryption.Mode == v1.EncryptionServiceManaged {
		plan.KeyAlias = keyAlias(ref)
	}
	copyNetworkFacts(&plan, n)
	return plan
}

// copyNetworkFacts copies what the Network has published.
func copyNetworkFacts(plan *contract.ClusterPlan, n *v1.Network) {
	if s := n.Status.Shoot; s != nil {
		plan.TechnicalID = s.TechnicalID
	}
	if v := n.Status.VPC; v != nil {
		plan.VPCID = v.ID
	}
	if i := n.Status.OIDC; i != nil {
		plan.IssuerID, plan.OIDCIssuer = i.ProviderARN, i.Issuer
	}
	if z := n.Status.DNSZone; z != nil {
		plan.DNSZoneID, plan.DNSZoneName = z.ID, z.Name
	}
	if b := n.Status.Bucket; b != nil && b.Name != "" {
		plan.BucketName = b.Name
	}
}

// checkNetworkFacts asks for what the plan copies from the Network's status.
func checkNetworkFacts(n *v1.Network, provider *v1.Provider) *problems {
	var p problems
	var missing []string
	need := func(what string, present bool) {
		if !present {
			missing = append(missing, what)
		}
	}
	s := n.Status
	need("shoot.technicalID", s.Shoot != nil && s.Shoot.TechnicalID != "")
	need("vpc.id", s.VPC != nil && s.VPC.ID != "")
	need("oidc.providerARN", s.OIDC != nil && s.OIDC.ProviderARN != "")
	need("bucket.name", s.Bucket != nil && s.Bucket.Name != "")
	wantsZone := or(n.Spec.DNS.Visibility, v1.DNSPrivate) != v1.DNSNone && provider.Spec.DNS != nil
	need("dnsZone.id", !wantsZone || s.DNSZone != nil && s.DNSZone.ID != "")
	if len(missing) > 0 {
		p.wait("Network %s has not published %s in its status yet; it must be Ready first", n.Name, strings.Join(missing, ", "))
	}
	return &p
}

func checkClusterReferences(c *v1.Cluster, n *v1.Network, provider *v1.Provider, pt *v1.ProviderType) *problems {
	var p problems
	p.label(c, v1.LabelProviderType, string(provider.Spec.Type), "the type of Provider "+provider.Name)
	p.label(c, v1.LabelProvider, provider.Name, "the Provider of Network "+n.Name)
	p.label(c, v1.LabelNetwork, string(c.Spec.Network), "as spec.network")
	p.merge(supportedCloud("spec.network", pt.Spec.Cloud))
	return &p
}

// CheckNewCluster holds the rules that do not touch a Cluster that exists. The
// account may be nil: then its rules are not asked.
func CheckNewCluster(c *v1.Cluster, n *v1.Network, account *v1.Account, o Options) []Problem {
	var p problems
	if n.DeletionTimestamp != nil {
		p.add("spec.network", c.Spec.Network, "the Network is being deleted; choose another one")
	}
	if h := n.Spec.Hibernation; h != nil && h.Mode == v1.HibernationAlways {
		p.add("spec.network", c.Spec.Network, "the Network hibernates for good (spec.hibernation.mode Always); change that, or choose another one")
	}
	p.merge(checkAccount("spec.network", c.Spec.Network, account))
	p.merge(checkQuota(c, account, o.Usage, ClusterUsage(c)))
	return p.list
}

func checkKey(e v1.Encryption, n *v1.Network) *problems {
	var p problems
	if e.Mode != v1.EncryptionCustomer {
		return &p
	}
	if parts := strings.Split(e.CustomerKeyARN, ":"); len(parts) < 6 || parts[3] != string(n.Spec.Region) {
		p.add("spec.encryption.customerKeyARN", e.CustomerKeyARN, "must be the ARN of a KMS key in the Network's region, %s", n.Spec.Region)
	}
	return &p
}

func checkPausePolicy(policy *v1.PausePolicy, pt *v1.ProviderType) *problems {
	var p problems
	if policy == nil || policy.MaxDuration == "" {
		return &p
	}
	longest := time.Duration(seconds(pt.Spec.Timeouts.PausedMax, defaultPausedMax)) * time.Second
	if d, err := time.ParseDuration(string(policy.MaxDuration)); err != nil || d <= 0 || d > longest {
		p.add("spec.pausePolicy.maxDuration", policy.MaxDuration, "must be more than 0 and at most %s, timeouts.pausedMax of ProviderType %s", longest, pt.Name)
	}
	return &p
}

// checkComponents checks each component by itself.
func checkComponents(wanted []component, pt *v1.ProviderType) *problems {
	var p problems
	for _, w := range wanted {
		if w.replicas == 0 {
			continue
		}
		p.merge(checkMachine(w, pt))
		if w.storage != nil {
			p.merge(checkStorage(w, pt))
		}
	}
	return &p
}

func checkMachine(w component, pt *v1.ProviderType) *problems {
	return &problems{list: CheckMachine(w.path+".machineClass", w.class, w.kind, pt)}
}

// CheckMachine checks a machine class for a component.
func CheckMachine(path string, name v1.ClassName, kind v1.ComponentName, pt *v1.ProviderType) []Problem {
	var p problems
	class := machineClass(pt, name)
	switch {
	case class == nil:
		p.add(path, name, "ProviderType %s has no such machine class; for %s choose one of %s", pt.Name, kind, choices(classNames(pt, kind)))
	case !allows(class, kind):
		p.add(path, name, "machine class %s of ProviderType %s is not for %s; choose one of %s", class.Name, pt.Name, kind, choices(classNames(pt, kind)))
	}
	return p.list
}

// checkStorage checks a volume against its class. The smallest size is for
// data; PD holds metadata only.
func checkStorage(w component, pt *v1.ProviderType) *problems {
	var p problems
	path := w.path + ".storage"
	class := storageClass(pt, w.storage.Class)
	if class == nil {
		var names []v1.ClassName
		for _, s := range pt.Spec.StorageClasses {
			names = append(names, s.Name)
		}
		p.add(path+".class", w.storage.Class, "ProviderType %s has no such storage class; choose one of %s", pt.Name, choices(names))
		return &p
	}
	size, err := resource.ParseQuantity(string(w.storage.Size))
	if err != nil || size.Sign() <= 0 {
		p.add(path+".size", w.storage.Size, "must be a quantity such as 500Gi")
		return &p
	}
	low, high := or(class.MinSize, defaultMinSize), or(class.MaxSize, defaultMaxSize)
	if smallest, err := resource.ParseQuantity(string(low)); err == nil && size.Cmp(smallest) < 0 && w.kind != v1.ComponentPD {
		p.add(path+".size", w.storage.Size, "storage class %s begins at %s", class.Name, low)
	}
	if largest, err := resource.ParseQuantity(string(high)); err == nil && size.Cmp(largest) > 0 {
		p.add(path+".size", w.storage.Size, "storage class %s ends at %s", class.Name, high)
	}
	return &p
}

// checkSizes checks components against each other: the rules for machines of
// 4 vCPU and less.
func checkSizes(wanted []component, pt *v1.ProviderType) *problems {
	var p problems
	small, size := map[v1.ComponentName]bool{}, map[v1.ComponentName]int32{}
	var tiflash, tidb *component
	for i, w := range wanted {
		if class := machineClass(pt, w.class); class != nil {
			small[w.kind], size[w.kind] = class.VCPU <= smallVCPU, class.VCPU
		}
		switch w.kind {
		case v1.ComponentTiDB:
			tidb = &wanted[i]
		case v1.ComponentTiFlash:
			tiflash = &wanted[i]
		}
	}
	if small[v1.ComponentTiDB] && size[v1.ComponentTiKV] > smallVCPU {
		p.add(tidb.path+".machineClass", tidb.class, "TiDB of %d vCPU goes with TiKV of at most %d vCPU, and TiKV has %d; choose a larger class for TiDB or a smaller one for TiKV",
			size[v1.ComponentTiDB], smallVCPU, size[v1.ComponentTiKV])
	}
	if tiflash != nil && tiflash.replicas > 0 {
		for _, other := range []v1.ComponentName{v1.ComponentTiDB, v1.ComponentTiKV} {
			if small[other] {
				p.add(tiflash.path+".replicas", tiflash.replicas, "TiFlash is not possible with %s of %d vCPU; set replicas to 0 or choose a larger class for %s", other, size[other], other)
			}
		}
	}
	return &p
}

func allows(class *v1.MachineClass, kind v1.ComponentName) bool {
	for _, c := range class.Components {
		if c == kind {
			return true
		}
	}
	return false
}

// classNames lists the machine classes for a component, or all.
func classNames(pt *v1.ProviderType, kind v1.ComponentName) []v1.ClassName {
	var names []v1.ClassName
	for i := range pt.Spec.MachineClasses {
		if m := &pt.Spec.MachineClasses[i]; kind == "" || allows(m, kind) {
			names = append(names, m.Name)
		}
	}
	return names
}
