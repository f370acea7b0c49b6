package plan

import (
	"time"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Defaults of the CRD's schema, for objects that did not pass an API server. A
// test holds them equal to the schema.
const (
	defaultMinSize = v1.StorageSize("10Gi")
	defaultMaxSize = v1.StorageSize("16Ti")

	defaultShootCreate   = time.Hour
	defaultShootDelete   = 90 * time.Minute
	defaultClusterCreate = time.Hour
	defaultPausedMax     = 168 * time.Hour
)

func networkLimits(pt *v1.ProviderType) v1.NetworkLimits {
	l := *pt.Spec.NetworkLimits.DeepCopy()
	if len(l.VPCCIDRs) == 0 {
		l.VPCCIDRs = []v1.CIDR{"10.250.0.0/15", "172.16.0.0/12", "192.168.0.0/16"}
	}
	l.MinPrefix, l.MaxPrefix = or(l.MinPrefix, 16), or(l.MaxPrefix, 23)
	return l
}

// defaultedNetwork returns the spec with every default of the schema.
func defaultedNetwork(n *v1.Network) v1.NetworkSpec {
	s := *n.Spec.DeepCopy()
	s.CIDR.VPC = or(s.CIDR.VPC, "10.250.0.0/16")
	s.CIDR.Pods = or(s.CIDR.Pods, "100.64.0.0/11")
	s.CIDR.Services = or(s.CIDR.Services, "100.104.0.0/13")
	s.Purpose = or(s.Purpose, purposeProduction)
	s.MaintenanceWindow.Begin = or(s.MaintenanceWindow.Begin, "220000+0000")
	s.MaintenanceWindow.End = or(s.MaintenanceWindow.End, "230000+0000")
	s.SystemPool.MachineClass = or(s.SystemPool.MachineClass, "4C16G")
	s.SystemPool.Minimum = or(s.SystemPool.Minimum, 2)
	s.SystemPool.Maximum = or(s.SystemPool.Maximum, 3)
	s.DNS.Visibility = or(s.DNS.Visibility, v1.DNSPrivate)
	return s
}

// defaultedCluster returns the spec with every default of the schema.
func defaultedCluster(c *v1.Cluster) v1.ClusterSpec {
	s := *c.Spec.DeepCopy()
	s.Operator = or(s.Operator, operatorV1)
	s.Port = or(s.Port, 4000)
	s.Topology.PD.Storage.Size = or(s.Topology.PD.Storage.Size, "20Gi")
	s.Topology.PD.Storage.Class = or(s.Topology.PD.Storage.Class, "Standard")
	s.Topology.TiKV.Storage.Class = or(s.Topology.TiKV.Storage.Class, "Standard")
	if s.Topology.TiFlash != nil {
		s.Topology.TiFlash.Storage.Class = or(s.Topology.TiFlash.Storage.Class, "Standard")
	}
	s.Encryption.Mode = or(s.Encryption.Mode, v1.EncryptionServiceManaged)
	s.BackupPolicy.Schedule = or(s.BackupPolicy.Schedule, v1.BackupDaily)
	s.BackupPolicy.TimeUTC = or(s.BackupPolicy.TimeUTC, "02:00")
	s.BackupPolicy.RetentionDays = or(s.BackupPolicy.RetentionDays, 7)
	return s
}

// enabled is a flag whose default is true.
func enabled(flag *bool) bool { return flag == nil || *flag }
