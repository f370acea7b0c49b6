package v1_test

import (
	"strings"
	"testing"
)

var longName = strings.Repeat("a", 64)

func TestAccountRules(t *testing.T) {
	check(t, map[string]rule{
		"tenantID is required":      {kind: "Account", fail: set{"spec.tenantID": remove}, says: "spec.tenantID: Required value"},
		"tenantID pattern":          {kind: "Account", pass: set{"spec.tenantID": "a-1"}, fail: set{"spec.tenantID": "a b"}, says: "spec.tenantID: Invalid value"},
		"tenantID is immutable":     {kind: "Account", from: set{}, pass: set{"spec.displayName": "B"}, fail: set{"spec.tenantID": "2"}, says: "is immutable; create another Account"},
		"displayName length":        {kind: "Account", pass: set{"spec.displayName": longName}, fail: set{"spec.displayName": longName + "a"}, says: "spec.displayName: Too long"},
		"quotas are not negative":   {kind: "Account", pass: set{"spec.quotas.clusters": 0}, fail: set{"spec.quotas.clusters": -1}, says: "spec.quotas.clusters"},
		"suspending is allowed":     {kind: "Account", from: set{}, pass: set{"spec.suspended": true}, fail: set{"spec.suspended": "yes"}, says: "spec.suspended"},
		"deletionPolicy is closed":  {kind: "Account", pass: set{"spec.deletionPolicy": "Retain"}, fail: set{"spec.deletionPolicy": "Forget"}, says: `supported values: "Delete", "Retain"`},
		"name fits into a label":    {kind: "Account", pass: set{"metadata.name": longName[:63]}, fail: set{"metadata.name": longName}, says: "metadata.name must have at most 63 characters"},
		"quotas of peers":           {kind: "Account", pass: set{"spec.quotas.peers": 50}, fail: set{"spec.quotas.peers": -1}, says: "spec.quotas.peers"},
		"quotas of nodes are whole": {kind: "Account", pass: set{"spec.quotas.tikvNodes": 3}, fail: set{"spec.quotas.tikvNodes": 1.5}, says: "spec.quotas.tikvNodes"},
	})
}

func TestProviderTypeRules(t *testing.T) {
	const kind = "ProviderType"
	class := func(changes set) []any {
		m := map[string]any{"name": "S", "type": "gp3"}
		for k, v := range changes {
			m[k] = v
		}
		return []any{m}
	}
	machine := func(changes set) []any {
		m := map[string]any{"name": "4C16G", "vcpu": 4, "memory": "16Gi", "machineType": "m5.xlarge"}
		for k, v := range changes {
			m[k] = v
		}
		return []any{m}
	}
	region := func(name string, zones ...any) []any { return []any{map[string]any{"name": name, "zones": zones}} }
	twice := append(machine(nil), machine(nil)...)
	check(t, map[string]rule{
		"cloud is supported":         {kind: kind, fail: set{"spec.cloud": "GCP"}, says: "cloud GCP is not supported yet"},
		"cloud is known":             {kind: kind, fail: set{"spec.cloud": "Azure"}, says: `supported values: "AWS", "GCP"`},
		"cloud is immutable":         {kind: kind, from: set{}, fail: set{"spec.cloud": "GCP"}, says: "is immutable; create another ProviderType for another cloud"},
		"backend is known":           {kind: kind, pass: set{"spec.backend": remove}, fail: set{"spec.backend": "EKS"}, says: `supported values: "Gardener"`},
		"backend is immutable":       {kind: kind, from: set{"spec.backend": "EKS"}, pass: set{"spec.backend": "EKS"}, fail: set{}, says: "is immutable; create another ProviderType for another backend"},
		"seed":                       {kind: kind, pass: set{"spec.gardener.seedName": "aws-1"}, fail: set{"spec.gardener.seedName": "aws_1"}, says: "spec.gardener.seedName"},
		"resize cool-down":           {kind: kind, pass: set{"spec.storageClasses": class(set{"resizeCooldown": "30m"})}, fail: set{"spec.storageClasses": class(set{"resizeCooldown": "soon"})}, says: "resizeCooldown"},
		"iops have a floor":          {kind: kind, pass: set{"spec.storageClasses": class(set{"iops": 100})}, fail: set{"spec.storageClasses": class(set{"iops": 99})}, says: "iops"},
		"prefixes have bounds":       {kind: kind, pass: set{"spec.networkLimits.maxPrefix": 28}, fail: set{"spec.networkLimits.maxPrefix": 29}, says: "spec.networkLimits.maxPrefix"},
		"network plugin":             {kind: kind, pass: set{"spec.gardener.networkingType": "cilium"}, fail: set{"spec.gardener.networkingType": "flannel"}, says: "networkingType"},
		"Kubernetes version":         {kind: kind, pass: set{"spec.gardener.kubernetesVersion": "1.33.5"}, fail: set{"spec.gardener.kubernetesVersion": "v1.33"}, says: "kubernetesVersion"},
		"credentials kind":           {kind: kind, pass: set{"spec.gardener.credentialsKind": "CredentialsBinding"}, fail: set{"spec.gardener.credentialsKind": "Secret"}, says: "credentialsKind"},
		"profile kind":               {kind: kind, pass: set{"spec.gardener.cloudProfile.kind": "NamespacedCloudProfile"}, fail: set{"spec.gardener.cloudProfile.kind": "Profile"}, says: "cloudProfile.kind"},
		"a region":                   {kind: kind, pass: set{"spec.regions": region("eu-west-1", "eu-west-1a")}, fail: set{"spec.regions": []any{}}, says: "spec.regions"},
		"a zone":                     {kind: kind, pass: set{"spec.regions": region("eu-west-1", "eu-west-1a", "eu-west-1b")}, fail: set{"spec.regions": region("eu-west-1")}, says: "spec.regions[0].zones"},
		"zones differ":               {kind: kind, fail: set{"spec.regions": region("eu-west-1", "eu-west-1a", "eu-west-1a")}, says: "Duplicate value"},
		"machine classes differ":     {kind: kind, pass: set{"spec.machineClasses": machine(nil)}, fail: set{"spec.machineClasses": twice}, says: "Duplicate value"},
		"vcpu":                       {kind: kind, pass: set{"spec.machineClasses": machine(set{"vcpu": 1})}, fail: set{"spec.machineClasses": machine(set{"vcpu": 0})}, says: "vcpu"},
		"memory":                     {kind: kind, pass: set{"spec.machineClasses": machine(set{"memory": "8Gi"})}, fail: set{"spec.machineClasses": machine(set{"memory": "8G"})}, says: "memory"},
		"components":                 {kind: kind, pass: set{"spec.machineClasses": machine(set{"components": []any{"PD"}})}, fail: set{"spec.machineClasses": machine(set{"components": []any{"Pump"}})}, says: "components[0]"},
		"storage type":               {kind: kind, pass: set{"spec.storageClasses": class(set{"type": "gp2"})}, fail: set{"spec.storageClasses": class(set{"type": "st1"})}, says: "type"},
		"storage sizes in order":     {kind: kind, pass: set{"spec.storageClasses": class(set{"minSize": "1Ti", "maxSize": "1024Gi"})}, fail: set{"spec.storageClasses": class(set{"minSize": "2Ti", "maxSize": "1Ti"})}, says: "minSize must not be greater than maxSize"},
		"provisioned types and IOPS": {kind: kind, pass: set{"spec.storageClasses": class(set{"type": "io1", "iops": 4000})}, fail: set{"spec.storageClasses": class(set{"type": "io1"})}, says: "types io1 and io2 need iops"},
		"throughput":                 {kind: kind, pass: set{"spec.storageClasses": class(set{"throughput": 250})}, fail: set{"spec.storageClasses": class(set{"type": "gp2", "throughput": 250})}, says: "only type gp3 has a throughput"},
		"VPC ranges":                 {kind: kind, pass: set{"spec.networkLimits.vpcCIDRs": []any{"10.0.0.0/8"}}, fail: set{"spec.networkLimits.vpcCIDRs": []any{"10.0.0.1/8"}}, says: "must be an IPv4 range that begins at its network address"},
		"VPC ranges are IPv4":        {kind: kind, fail: set{"spec.networkLimits.vpcCIDRs": []any{"2001:db8::/32"}}, says: "must be an IPv4 range"},
		"prefixes in order":          {kind: kind, pass: set{"spec.networkLimits.minPrefix": 23}, fail: set{"spec.networkLimits.minPrefix": 24}, says: "minPrefix must not be greater than maxPrefix"},
		"timeouts":                   {kind: kind, pass: set{"spec.timeouts.wake": "1h30m"}, fail: set{"spec.timeouts.wake": "2d"}, says: "spec.timeouts.wake"},
	})
}

func TestProviderRules(t *testing.T) {
	const kind = "Provider"
	gcp := func(project string) set {
		return set{"spec.aws": remove, "spec.gcp": map[string]any{"projectID": project}}
	}
	check(t, map[string]rule{
		"type is required":          {kind: kind, fail: set{"spec.type": remove}, says: "spec.type: Required value"},
		"type is immutable":         {kind: kind, from: set{}, fail: set{"spec.type": "other"}, says: "is immutable; create another Provider for another type"},
		"account is immutable":      {kind: kind, from: set{}, fail: set{"spec.account": "other"}, says: "is immutable; create another Provider for another Account"},
		"project length":            {kind: kind, pass: set{"spec.project": "abcdefghij"}, fail: set{"spec.project": "abcdefghijk"}, says: "spec.project: Too long"},
		"project is immutable":      {kind: kind, from: set{}, fail: set{"spec.project": "other"}, says: "project is immutable"},
		"project stays the default": {kind: kind, from: set{"spec.project": remove}, pass: set{"spec.project": remove}, fail: set{}, says: "project is immutable, also when it was not given at first"},
		"one way to credentials":    {kind: kind, fail: set{"spec.credentials.workloadIdentity": map[string]any{"roleARN": "a"}}, says: "exactly one of secretRef and workloadIdentity"},
		"some credentials":          {kind: kind, fail: set{"spec.credentials.secretRef": remove}, says: "exactly one of secretRef and workloadIdentity"},
		"workload identity":         {kind: kind, fail: set{"spec.credentials": map[string]any{"workloadIdentity": map[string]any{}}}, says: "workload identity is not supported yet"},
		"credentials may change":    {kind: kind, from: set{}, pass: set{"spec.credentials.secretRef.name": "other"}, fail: set{"spec.credentials.secretRef.name": "Not Valid"}, says: "secretRef.name"},
		"one cloud":                 {kind: kind, fail: set{"spec.aws": remove}, says: "exactly one of aws and gcp must be set"},
		"not two clouds":            {kind: kind, fail: set{"spec.gcp": map[string]any{"projectID": "core-prod"}}, says: "exactly one of aws and gcp must be set"},
		"GCP":                       {kind: kind, fail: set{"spec.aws": remove, "spec.gcp": map[string]any{"projectID": "core-prod"}}, says: "cloud GCP is not supported yet"},
		"GCP project is immutable":  {kind: kind, from: gcp("core-prod"), pass: gcp("core-prod"), fail: gcp("core-test"), says: "is immutable; create another Provider for another GCP project"},
		"account id":                {kind: kind, fail: set{"spec.aws.accountID": "12345678901"}, says: "spec.aws.accountID"},
		"account id is immutable":   {kind: kind, from: set{}, fail: set{"spec.aws.accountID": "210987654321"}, says: "is immutable; create another Provider for another AWS account"},
		"partition":                 {kind: kind, pass: set{"spec.aws.partition": remove}, fail: set{"spec.aws.partition": "aws-cn"}, says: "other partitions are not supported yet"},
		"partition is immutable":    {kind: kind, from: set{}, fail: set{"spec.aws.partition": "aws-cn"}, says: "is immutable; create another Provider for another partition"},
		"domain":                    {kind: kind, pass: set{"spec.dns.domain": "a.b"}, fail: set{"spec.dns.domain": "com"}, says: "spec.dns.domain"},
		"domain is immutable":       {kind: kind, from: set{}, pass: set{"spec.dns.parentZoneID": "Z9"}, fail: set{"spec.dns.domain": "other.example.com"}, says: "dns.domain is immutable"},
		"domain is not removed":     {kind: kind, from: set{}, fail: set{"spec.dns": remove}, says: "dns.domain is immutable"},
		"name leaves room":          {kind: kind, pass: set{"metadata.name": longName[:50]}, fail: set{"metadata.name": longName[:51]}, says: "metadata.name must have at most 50 characters"},
	})
}
