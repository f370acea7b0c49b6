package plan

import (
	"slices"
	"time"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const (
	purposeProduction = "production"
	// productionZones is how many zones a production Network needs.
	productionZones = 3
	// longestShoot is Gardener's limit for project and Shoot together.
	longestShoot = 21
	// systemPoolName is the worker pool of everything that is not a Cluster.
	systemPoolName = "system"
	// nodeVolumeSize is the nodes' own disk; databases have volumes of their own.
	nodeVolumeSize = "50Gi"
)

// Network validates a Network against its references and resolves every
// default. What the Network has published in its status stays as it is, however
// defaults change. The account may be nil while the Network is being deleted.
func Network(n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, account *v1.Account, o Options) (contract.NetworkPlan, error) {
	ref, err := refOf(v1.KindNetwork, n)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	providerRef, err := refOf(v1.KindProvider, provider)
	if err != nil {
		return contract.NetworkPlan{}, err
	}
	spec := defaultedNetwork(n)
	spec.Zones = networkZones(n, pt)

	p := problems{list: slices.Concat(o.Problems, CheckNetwork(n, provider, pt, o))}
	if creating(n) {
		p.list = append(p.list, CheckNewNetwork(n, provider, pt, account, o)...)
	}
	return buildNetwork(n, spec, ref, providerRef, provider, pt, o), p.fault(v1.KindNetwork, n)
}

// CheckNetwork holds the rules for every Network.
func CheckNetwork(n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, o Options) []Problem {
	spec := defaultedNetwork(n)
	spec.Zones = networkZones(n, pt)
	var p problems
	p.merge(supportedCloud("spec.provider", pt.Spec.Cloud))
	p.merge(checkNetworkReferences(n, provider))
	p.merge(checkRegion(spec, pt))
	p.merge(checkCIDRs(spec.CIDR, networkLimits(pt), pt.Name, len(spec.Zones)))
	p.merge(checkWindow(spec.MaintenanceWindow))
	p.merge(checkSystemPool(spec, pt))
	p.merge(checkNetworkNames(n, spec, provider, o))
	return p.list
}

func buildNetwork(n *v1.Network, spec v1.NetworkSpec, ref, providerRef contract.ObjectRef, provider *v1.Provider, pt *v1.ProviderType, o Options) contract.NetworkPlan {
	shoot := shootRef(n, provider, o)
	account := cloudAccount(providerRef, provider)
	account.Region = string(spec.Region)
	gardener := pt.Spec.Gardener
	return contract.NetworkPlan{
		Ref: ref, Generation: n.Generation, Account: account,
		Cloud: string(pt.Spec.Cloud), Tenant: string(provider.Spec.Account), Env: o.Env,

		Project: projectOf(shoot.Namespace), Shoot: shoot,
		CredentialsKind: or(gardener.CredentialsKind, "CredentialsBinding"), BindingName: BindingName(providerRef),
		CloudProfileKind: or(gardener.CloudProfile.Kind, "CloudProfile"), CloudProfile: gardener.CloudProfile.Name,
		NetworkingType: or(gardener.NetworkingType, "calico"), SeedName: gardener.SeedName,

		Region: string(spec.Region), Zones: plain(spec.Zones),
		VPCCIDR: string(spec.CIDR.VPC), PodsCIDR: string(spec.CIDR.Pods), ServicesCIDR: string(spec.CIDR.Services),
		KubernetesVersion: string(or(spec.KubernetesVersion, gardener.KubernetesVersion)), Purpose: spec.Purpose,
		WindowBegin: spec.MaintenanceWindow.Begin, WindowEnd: spec.MaintenanceWindow.End,
		SystemPool: systemPool(spec, pt),

		BucketName: bucketName(ref, account.AccountID), RetainBucket: enabled(spec.Bucket.Retain),
		DNSZoneName: zoneName(n, spec, provider, shoot), DNSVisibility: string(spec.DNS.Visibility),

		ShootCreateTimeout: seconds(pt.Spec.Timeouts.ShootCreate, defaultShootCreate),
		ShootDeleteTimeout: seconds(pt.Spec.Timeouts.ShootDelete, defaultShootDelete),
	}
}

// networkZones are the zones of the spec; without them those in use, or all of
// the region: a zone that the region gets later does not reach a Network that
// exists.
func networkZones(n *v1.Network, pt *v1.ProviderType) []v1.ZoneName {
	if len(n.Spec.Zones) > 0 {
		return n.Spec.Zones
	}
	r := region(pt, n.Spec.Region)
	if vpc := n.Status.VPC; vpc != nil && len(vpc.Zones) > 0 {
		return inOrder(vpc.Zones, r)
	}
	if r == nil {
		return nil
	}
	return r.Zones
}

// RegionZones are all zones of a region, in order of use; none when pt is nil or
// has no such region.
func RegionZones(pt *v1.ProviderType, name v1.RegionName) []v1.ZoneName {
	if pt == nil {
		return nil
	}
	if r := region(pt, name); r != nil {
		return r.Zones
	}
	return nil
}

// inOrder sorts the zones in use as the region lists them: subnets go by the
// position of their zone, and status is a set.
func inOrder(zones []string, r *v1.Region) []v1.ZoneName {
	out := make([]v1.ZoneName, 0, len(zones))
	if r != nil {
		for _, z := range r.Zones {
			if slices.Contains(zones, string(z)) {
				out = append(out, z)
			}
		}
	}
	for _, z := range zones {
		if !slices.Contains(out, v1.ZoneName(z)) {
			out = append(out, v1.ZoneName(z))
		}
	}
	return out
}

// shootRef is the Shoot that exists, or the one to make.
func shootRef(n *v1.Network, provider *v1.Provider, o Options) contract.ShootRef {
	if s := n.Status.Shoot; s != nil && s.Name != "" && s.Namespace != "" {
		return contract.ShootRef{Namespace: s.Namespace, Name: s.Name}
	}
	return contract.ShootRef{Namespace: ProjectNamespace(project(provider, o)), Name: ShootName(n)}
}

// zoneName is the DNS zone that exists, or the one to make; empty for none.
func zoneName(n *v1.Network, spec v1.NetworkSpec, provider *v1.Provider, shoot contract.ShootRef) string {
	switch {
	case spec.DNS.Visibility == v1.DNSNone:
		return ""
	case n.Status.DNSZone != nil && n.Status.DNSZone.Name != "":
		return n.Status.DNSZone.Name
	case provider.Spec.DNS == nil:
		return ""
	}
	return shoot.Name + "." + provider.Spec.DNS.Domain
}

// systemPool stays in the first three zones: the zones of a pool are immutable
// in Gardener, those of a Network are not.
func systemPool(spec v1.NetworkSpec, pt *v1.ProviderType) contract.MachinePool {
	pool := contract.MachinePool{
		Name: systemPoolName, Minimum: spec.SystemPool.Minimum, Maximum: spec.SystemPool.Maximum,
		Zones: plain(firstZones(spec.Zones)), VolumeType: nodeVolumeType(pt), VolumeSize: nodeVolumeSize,
	}
	if class := machineClass(pt, spec.SystemPool.MachineClass); class != nil {
		pool.MachineType = class.MachineType
	}
	return pool
}

func checkNetworkReferences(n *v1.Network, provider *v1.Provider) *problems {
	var p problems
	p.label(n, v1.LabelProviderType, string(provider.Spec.Type), "the type of Provider "+provider.Name)
	p.label(n, v1.LabelProvider, string(n.Spec.Provider), "as spec.provider")
	if n.Spec.Account != "" && n.Spec.Account != provider.Spec.Account {
		p.add("spec.account", n.Spec.Account, "must be the Account of Provider %s, %s; correct or remove it", provider.Name, provider.Spec.Account)
	}
	return &p
}

func checkRegion(spec v1.NetworkSpec, pt *v1.ProviderType) *problems {
	var p problems
	r := region(pt, spec.Region)
	if r == nil {
		var names []v1.RegionName
		for _, r := range pt.Spec.Regions {
			names = append(names, r.Name)
		}
		p.add("spec.region", spec.Region, "ProviderType %s has no such region; choose one of %s", pt.Name, choices(names))
		return &p
	}
	for _, z := range spec.Zones {
		if !slices.Contains(r.Zones, z) {
			p.add("spec.zones", z, "region %s of ProviderType %s has no such zone; choose from %s", r.Name, pt.Name, choices(r.Zones))
		}
	}
	if spec.Purpose == purposeProduction && len(spec.Zones) < productionZones {
		p.add("spec.zones", choices(spec.Zones), "purpose production needs %d zones; add zones or set another purpose", productionZones)
	}
	return &p
}

// checkWindow repeats Gardener's rule, 30 minutes to 6 hours.
func checkWindow(w v1.MaintenanceWindow) *problems {
	const layout = "150405-0700"
	var p problems
	begin, err1 := time.Parse(layout, w.Begin)
	end, err2 := time.Parse(layout, w.End)
	if err1 != nil || err2 != nil {
		p.add("spec.maintenanceWindow", w.Begin+" to "+w.End, "both must be of the form 220000+0000")
		return &p
	}
	const day = 24 * time.Hour
	length := ((end.Sub(begin) % day) + day) % day
	if length < 30*time.Minute || length > 6*time.Hour {
		p.add("spec.maintenanceWindow", w.Begin+" to "+w.End, "the window is %s long; it must be between 30m and 6h", length)
	}
	return &p
}

func checkSystemPool(spec v1.NetworkSpec, pt *v1.ProviderType) *problems {
	const path = "spec.systemPool"
	var p problems
	if machineClass(pt, spec.SystemPool.MachineClass) == nil {
		p.add(path+".machineClass", spec.SystemPool.MachineClass, "ProviderType %s has no such machine class; choose one of %s", pt.Name, choices(classNames(pt, "")))
	}
	if zones := len(firstZones(spec.Zones)); int(spec.SystemPool.Maximum) < zones {
		p.add(path+".maximum", spec.SystemPool.Maximum, "must be at least the number of its zones, %d", zones)
	}
	return &p
}

func checkNetworkNames(n *v1.Network, spec v1.NetworkSpec, provider *v1.Provider, o Options) *problems {
	p := checkProject(provider, o)
	project, shoot := project(provider, o), ShootName(n)
	if len(project) <= longestProject && len(project)+len(shoot) > longestShoot {
		p.add("spec.shootName", shoot, "has %d characters and project %s has %d; Gardener allows %d together; choose a shorter name",
			len(shoot), project, len(project), longestShoot)
	}
	if spec.DNS.Visibility != v1.DNSNone && provider.Spec.DNS == nil {
		p.add("spec.dns.visibility", spec.DNS.Visibility, "Provider %s has no spec.dns.domain; set visibility to None, or use a Provider with a domain", provider.Name)
	}
	return p
}

// CheckNewNetwork holds the rules that do not touch a Network that exists. The
// account may be nil: then its rules are not asked.
func CheckNewNetwork(n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, account *v1.Account, o Options) []Problem {
	var p problems
	if r := region(pt, n.Spec.Region); r != nil && r.Deprecated {
		p.add("spec.region", n.Spec.Region, "the region is deprecated for new Networks; choose another one")
	}
	if provider.DeletionTimestamp != nil {
		p.add("spec.provider", n.Spec.Provider, "the Provider is being deleted; choose another one")
	}
	if len(o.ShootHolders) > 0 {
		p.add("spec.shootName", ShootName(n), "Network %s has the Shoot of that name in project %s already; set another shootName", o.ShootHolders[0], project(provider, o))
	}
	p.merge(checkGardener(n, provider, pt, o))
	p.merge(checkAccount("spec.provider", n.Spec.Provider, account))
	p.merge(checkQuota(n, account, o.Usage, Usage{Networks: 1}))
	return p.list
}

func checkAccount(path string, value v1.ReferenceName, account *v1.Account) *problems {
	return &problems{list: Suspended(path, value, account)}
}

// firstZones are the zones that pools are spread over.
func firstZones(zones []v1.ZoneName) []v1.ZoneName { return zones[:min(len(zones), productionZones)] }

func plain[T ~string](in []T) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		out = append(out, string(s))
	}
	return out
}
