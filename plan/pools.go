package plan

import (
	"strings"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// component is what a topology asks for of one component.
type component struct {
	kind     v1.ComponentName
	name     string // in contract.Component
	prefix   string // of its pools' names
	path     string // in the spec
	replicas int32
	class    v1.ClassName
	storage  *v1.Storage
}

// wantedComponents lists the components in the order of their start.
func wantedComponents(t v1.Topology) []component {
	out := []component{
		{v1.ComponentPD, "pd", "pd", "spec.topology.pd", t.PD.Replicas, t.PD.MachineClass, &t.PD.Storage},
		{v1.ComponentTiKV, "tikv", "kv", "spec.topology.tikv", t.TiKV.Replicas, t.TiKV.MachineClass, &t.TiKV.Storage},
		{v1.ComponentTiDB, "tidb", "db", "spec.topology.tidb", t.TiDB.Replicas, t.TiDB.MachineClass, nil},
	}
	if f := t.TiFlash; f != nil {
		out = append(out, component{v1.ComponentTiFlash, "tiflash", "fl", "spec.topology.tiflash", f.Replicas, f.MachineClass, &f.Storage})
	}
	return out
}

// component resolves classes; what does not resolve was reported already and
// stays empty.
func (w component) component(cluster contract.ObjectRef, zones []v1.ZoneName, pt *v1.ProviderType) contract.Component {
	c := contract.Component{Name: w.name, Replicas: w.replicas, MachineClass: string(w.class), PoolGroup: w.prefix + "-" + cluster.ID[:6]}
	machineType := ""
	if class := machineClass(pt, w.class); class != nil {
		c.VCPU, c.Memory, machineType = class.VCPU, string(class.Memory), class.MachineType
	}
	if w.storage != nil {
		c.StorageSize = string(w.storage.Size)
		c.StorageClass = strings.ToLower(string(w.storage.Class)) + "-" + cluster.ID8()
		if class := storageClass(pt, w.storage.Class); class != nil {
			c.DiskType, c.IOPS, c.Throughput = class.Type, class.IOPS, class.Throughput
		}
	}
	c.Pools = w.pools(cluster, zones, machineType, nodeVolumeType(pt))
	return c
}

// pools are one worker pool for each zone that gets replicas, of as many nodes
// as replicas: each node holds one Pod. The first zones get one more when the
// replicas do not divide. Names are given when it is known which pools exist,
// see contract.AllocateWorkerPools.
func (w component) pools(cluster contract.ObjectRef, zones []v1.ZoneName, machineType, volumeType string) []contract.MachinePool {
	var out []contract.MachinePool
	for i, zone := range zones {
		nodes := w.replicas / int32(len(zones))
		if int32(i) < w.replicas%int32(len(zones)) {
			nodes++
		}
		if nodes == 0 {
			continue
		}
		out = append(out, contract.MachinePool{
			MachineType: machineType, Minimum: nodes, Maximum: nodes, Zones: []string{string(zone)},
			VolumeType: volumeType, VolumeSize: nodeVolumeSize,
			Labels: map[string]string{contract.LabelPoolOwner: cluster.ID}, Dedicated: w.name,
		})
	}
	return out
}
