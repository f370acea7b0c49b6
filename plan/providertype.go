package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// ProviderType validates a ProviderType. The error is a fault of class Invalid.
func ProviderType(pt *v1.ProviderType) error {
	return Refusal(v1.KindProviderType, pt, CheckProviderType(pt))
}

// CheckProviderType holds the rules for every ProviderType.
func CheckProviderType(pt *v1.ProviderType) []Problem {
	var p problems
	p.label(pt, v1.LabelProviderType, pt.Name, "the name of the ProviderType")
	p.merge(supportedCloud("spec.cloud", pt.Spec.Cloud))
	for i, r := range pt.Spec.Regions {
		at := fmt.Sprintf("spec.regions[%d]", i)
		if len(r.Zones) == 0 {
			p.add(at+".zones", "", "region %s has no zone; name at least one", r.Name)
		}
	}
	p.merge(checkClasses(pt))
	p.merge(checkNetworkLimits(pt))
	p.merge(checkTimeouts(pt))
	return p.list
}

func supportedCloud(path string, cloud v1.Cloud) *problems {
	var p problems
	if cloud != v1.CloudAWS {
		p.add(path, cloud, "set it to AWS: cloud %s is not supported yet", cloud)
	}
	return &p
}

func checkClasses(pt *v1.ProviderType) *problems {
	var p problems
	for i, m := range pt.Spec.MachineClasses {
		if _, err := resource.ParseQuantity(string(m.Memory)); err != nil {
			p.add(fmt.Sprintf("spec.machineClasses[%d].memory", i), m.Memory, "must be a quantity such as 32Gi")
		}
	}
	if nodeVolumeType(pt) == "" {
		p.add("spec.storageClasses", "", "one class must be of a type without provisioned IOPS (gp2, gp3): the nodes' own disks use it; add one")
	}
	for i, s := range pt.Spec.StorageClasses {
		at := fmt.Sprintf("spec.storageClasses[%d]", i)
		smallest, err1 := resource.ParseQuantity(string(or(s.MinSize, defaultMinSize)))
		largest, err2 := resource.ParseQuantity(string(or(s.MaxSize, defaultMaxSize)))
		switch {
		case err1 != nil:
			p.add(at+".minSize", s.MinSize, "must be a quantity such as 200Gi")
		case err2 != nil:
			p.add(at+".maxSize", s.MaxSize, "must be a quantity such as 4Ti")
		case smallest.Cmp(largest) > 0:
			p.add(at+".minSize", s.MinSize, "must not be greater than maxSize, %s", s.MaxSize)
		}
	}
	return &p
}

func checkNetworkLimits(pt *v1.ProviderType) *problems {
	var p problems
	limits := networkLimits(pt)
	for i, c := range limits.VPCCIDRs {
		if _, ok := parseCIDR(c); !ok {
			p.add(fmt.Sprintf("spec.networkLimits.vpcCIDRs[%d]", i), c, "%s", notCanonical)
		}
	}
	if limits.MinPrefix > limits.MaxPrefix {
		p.add("spec.networkLimits.minPrefix", limits.MinPrefix, "must not be greater than maxPrefix, %d", limits.MaxPrefix)
	}
	return &p
}

func checkTimeouts(pt *v1.ProviderType) *problems {
	var p problems
	t := pt.Spec.Timeouts
	for _, f := range []struct {
		name  string
		value v1.Duration
	}{
		{"shootCreate", t.ShootCreate}, {"shootDelete", t.ShootDelete}, {"wake", t.Wake}, {"clusterCreate", t.ClusterCreate},
		{"peerAccept", t.PeerAccept}, {"pausedMax", t.PausedMax}, {"hibernateIdle", t.HibernateIdle},
	} {
		if f.value == "" {
			continue
		}
		if d, err := time.ParseDuration(string(f.value)); err != nil || d <= 0 {
			p.add("spec.timeouts."+f.name, f.value, "must be a positive time span such as 60m")
		}
	}
	return &p
}

// seconds is a checked Duration in seconds, or the default.
func seconds(d v1.Duration, otherwise time.Duration) int64 {
	if v, err := time.ParseDuration(string(d)); err == nil && v > 0 {
		otherwise = v
	}
	return int64(otherwise / time.Second)
}

// machineClass returns the class of that name, or nil.
func machineClass(pt *v1.ProviderType, name v1.ClassName) *v1.MachineClass {
	for i := range pt.Spec.MachineClasses {
		if pt.Spec.MachineClasses[i].Name == name {
			return &pt.Spec.MachineClasses[i]
		}
	}
	return nil
}

// storageClass returns the class of that name, or nil.
func storageClass(pt *v1.ProviderType, name v1.ClassName) *v1.StorageClass {
	for i := range pt.Spec.StorageClasses {
		if pt.Spec.StorageClasses[i].Name == name {
			return &pt.Spec.StorageClasses[i]
		}
	}
	return nil
}

// region returns the region of that name, or nil.
func region(pt *v1.ProviderType, name v1.RegionName) *v1.Region {
	for i := range pt.Spec.Regions {
		if pt.Spec.Regions[i].Name == name {
			return &pt.Spec.Regions[i]
		}
	}
	return nil
}

// nodeVolumeType is the type of the nodes' own disks: that of the first class
// which needs no provisioned IOPS, as a Shoot's boot volumes have none.
func nodeVolumeType(pt *v1.ProviderType) string {
	for _, s := range pt.Spec.StorageClasses {
		if s.Type != "io1" && s.Type != "io2" {
			return s.Type
		}
	}
	return ""
}
