package shootrules

import (
	"encoding/json"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/builders"
)

type shoot = gardencorev1beta1.Shoot

// ruleCase is a Shoot that passes a rule at its edge, and one that breaks it.
// Both start from a good one on the case's cloud.
type ruleCase struct {
	rule string
	gcp  bool
	// pass may be nil: the good Shoot passes every rule.
	pass, fail func(*shoot)
	// path and value of the finding.
	path, value string
	project     string // core when empty
}

func networkPlan(gcp bool) contract.NetworkPlan {
	zones := []string{"us-west-2a", "us-west-2b", "us-west-2c"}
	p := contract.NetworkPlan{
		Ref:     contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1", ID: "0123456789abcdef"},
		Account: contract.CloudAccount{Namespace: "infra", Provider: "core"},
		Cloud:   "AWS", Env: "dev", Project: "core",
		Shoot:           contract.ShootRef{Namespace: "garden-core", Name: "n-3f9ac21"},
		CredentialsKind: "CredentialsBinding", BindingName: "core-89abcdef",
		CloudProfileKind: "CloudProfile", CloudProfile: "aws", NetworkingType: "calico", SeedName: "seed-a",
		Region: "us-west-2", Zones: zones, VPCCIDR: "10.250.0.0/16", PodsCIDR: "100.64.0.0/11", ServicesCIDR: "100.104.0.0/13",
		KubernetesVersion: "1.33", Purpose: "production", WindowBegin: "220000+0000", WindowEnd: "230000+0000",
		SystemPool: contract.MachinePool{Name: "system", MachineType: "m5.xlarge", Minimum: 2, Maximum: 3, Zones: zones, VolumeType: "gp3", VolumeSize: "50Gi"},
	}
	if gcp {
		zones = []string{"us-central1-a", "us-central1-b", "us-central1-c"}
		p.Cloud, p.Region, p.Zones, p.CloudProfile = "GCP", "us-central1", zones, "gcp"
		p.SystemPool.Zones, p.SystemPool.VolumeType, p.SystemPool.MachineType = zones, "pd-balanced", "n2-standard-4"
		p.GCP = &contract.GCPNetworkPlan{PSCNATCIDR: "10.251.0.0/20", NodeServiceAccount: "nodes@p.iam.gserviceaccount.com"}
	}
	return p
}

// edit changes a provider configuration.
func edit[T any](raw *runtime.RawExtension, change func(*T)) {
	v := new(T)
	if err := json.Unmarshal(raw.Raw, v); err != nil {
		panic(err)
	}
	change(v)
	raw.Raw, _ = json.Marshal(v)
}

func infra(change func(*builders.AWSInfrastructureConfig)) func(*shoot) {
	return func(s *shoot) { edit(s.Spec.Provider.InfrastructureConfig, change) }
}

func awsWorker(change func(*builders.AWSWorkerConfig)) func(*shoot) {
	return func(s *shoot) { edit(s.Spec.Provider.Workers[0].ProviderConfig, change) }
}

func gcpInfra(change func(*builders.GCPNetworks)) func(*shoot) {
	return func(s *shoot) {
		edit(s.Spec.Provider.InfrastructureConfig, func(c *builders.GCPInfrastructureConfig) { change(&c.Networks) })
	}
}

func gcpControl(change func(*builders.GCPControlPlaneConfig)) func(*shoot) {
	return func(s *shoot) { edit(s.Spec.Provider.ControlPlaneConfig, change) }
}

func gcpWorker(change func(*builders.GCPWorkerConfig)) func(*shoot) {
	return func(s *shoot) { edit(s.Spec.Provider.Workers[0].ProviderConfig, change) }
}

func worker(change func(*gardencorev1beta1.Worker)) func(*shoot) {
	return func(s *shoot) { change(&s.Spec.Provider.Workers[0]) }
}

// another appends a copy of the system pool.
func another(change func(*gardencorev1beta1.Worker)) func(*shoot) {
	return func(s *shoot) {
		w := s.Spec.Provider.Workers[0].DeepCopy()
		change(w)
		s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, *w)
	}
}

func dataVolume(name, size, kind string) gardencorev1beta1.DataVolume {
	return gardencorev1beta1.DataVolume{Name: name, VolumeSize: size, Type: &kind}
}

func profileName(s *shoot) {
	s.Spec.CloudProfileName = new("aws") //nolint:staticcheck // SA1019: the rule is about the deprecated field.
}

const (
	pool0    = "spec.provider.workers[0]"
	config0  = pool0 + ".providerConfig"
	infraAt  = "spec.provider.infrastructureConfig"
	networks = infraAt + ".networks"
)

var shootCases = []ruleCase{
	{rule: "name-length", pass: func(s *shoot) { s.Name = "n-seventeen-chars" }, fail: func(s *shoot) { s.Name = "n-eighteen-charss1" }, path: "metadata.name", value: `"n-eighteen-charss1"`},
	{rule: "name-label", pass: func(s *shoot) { s.Name = "a-b-1" }, fail: func(s *shoot) { s.Name = "a--b" }, path: "metadata.name", value: `"a--b"`},
	{rule: "name-label", fail: func(s *shoot) { s.Name = "A" }, path: "metadata.name", value: `"A"`},
	{rule: "name-label", pass: func(s *shoot) { s.Name, s.GenerateName = "", "n-" }, fail: func(s *shoot) { s.Name = "" }, path: "metadata.name", value: ""},
	{rule: "generate-name-length", pass: func(s *shoot) { s.GenerateName = "n-16-characters-" }, fail: func(s *shoot) { s.GenerateName = "n-17-characters--" }, path: "metadata.generateName", value: `"n-17-characters--"`},
	{rule: "project-name", fail: func(*shoot) {}, project: "eleven-long", path: "metadata.namespace", value: `"eleven-long"`},
	{rule: "project-name", fail: func(*shoot) {}, project: "a--b", path: "metadata.namespace", value: `"a--b"`},
	{rule: "namespace", pass: func(s *shoot) { s.Namespace = "garden" }, fail: func(s *shoot) { s.Namespace = "infra" }, path: "metadata.namespace", value: `"infra"`},
	{rule: "no-finalizers", fail: func(s *shoot) { s.Finalizers = []string{"gardener"} }, path: "metadata.finalizers[0]", value: `"gardener"`},

	{rule: "cloud-profile", pass: func(s *shoot) { s.Spec.CloudProfile.Kind = "NamespacedCloudProfile" }, fail: func(s *shoot) { s.Spec.CloudProfile = nil }, path: "spec.cloudProfile", value: ""},
	{rule: "cloud-profile", fail: func(s *shoot) { s.Spec.CloudProfile.Kind = "Profile" }, path: "spec.cloudProfile", value: `{"kind":"Profile","name":"aws"}`},
	{rule: "cloud-profile-name", pass: profileName, fail: func(s *shoot) { profileName(s); s.Spec.Kubernetes.Version = "1.34.2" }, path: "spec.cloudProfileName", value: `"aws"`},
	{rule: "region", fail: func(s *shoot) { s.Spec.Region = "" }, path: "spec.region", value: ""},
	{rule: "one-binding", pass: func(s *shoot) { s.Spec.CredentialsBindingName, s.Spec.SecretBindingName = nil, new("x") }, fail: func(s *shoot) { s.Spec.SecretBindingName = new("x") }, path: "spec.secretBindingName", value: `"x"`},
	{rule: "one-binding", fail: func(s *shoot) { s.Spec.CredentialsBindingName = nil }, path: "spec.credentialsBindingName", value: ""},
	{rule: "secret-binding-version", pass: func(s *shoot) {
		s.Spec.SecretBindingName, s.Spec.CredentialsBindingName, s.Spec.Kubernetes.Version = new("x"), nil, "1.33.9"
	}, fail: func(s *shoot) {
		s.Spec.SecretBindingName, s.Spec.CredentialsBindingName, s.Spec.Kubernetes.Version = new("x"), nil, "1.34"
	}, path: "spec.secretBindingName", value: `"x"`},
	{rule: "purpose", pass: func(s *shoot) {
		s.Namespace, s.Spec.Purpose = "garden", new(gardencorev1beta1.ShootPurposeInfrastructure)
	}, fail: func(s *shoot) { s.Spec.Purpose = new(gardencorev1beta1.ShootPurposeInfrastructure) }, path: "spec.purpose", value: `"infrastructure"`},
	{rule: "purpose", pass: func(s *shoot) { s.Spec.Purpose = nil }, fail: func(s *shoot) { s.Spec.Purpose = new(gardencorev1beta1.ShootPurpose("prod")) }, path: "spec.purpose", value: `"prod"`},
	{rule: "seed-name", pass: func(s *shoot) { s.Spec.SeedName = nil }, fail: func(s *shoot) { s.Spec.SeedName = new("") }, path: "spec.seedName", value: `""`},
	{rule: "kubernetes-version", pass: func(s *shoot) { s.Spec.Kubernetes.Version = "1.36.1" }, fail: func(s *shoot) { s.Spec.Kubernetes.Version = "1.37" }, path: "spec.kubernetes.version", value: `"1.37"`},
	{rule: "kubernetes-version", pass: func(s *shoot) { s.Spec.Kubernetes.Version = "1.32" }, fail: func(s *shoot) { s.Spec.Kubernetes.Version = "1.31.14" }, path: "spec.kubernetes.version", value: `"1.31.14"`},
	{rule: "kubernetes-version", fail: func(s *shoot) { s.Spec.Kubernetes.Version = "v1.33" }, path: "spec.kubernetes.version", value: `"v1.33"`},
	{rule: "kubernetes-version", fail: func(s *shoot) { s.Spec.Kubernetes.Version = "" }, path: "spec.kubernetes.version", value: ""},
	{rule: "hibernation-schedules", pass: func(s *shoot) { s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)} }, fail: func(s *shoot) {
		s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Schedules: []gardencorev1beta1.HibernationSchedule{{Start: new("0 20 * * *")}}}
	}, path: "spec.hibernation.schedules", value: `[{"start":"0 20 * * *"}]`},
	{rule: "provider-type", fail: func(s *shoot) { s.Spec.Provider.Type = "azure" }, path: "spec.provider.type", value: `"azure"`},

	{rule: "networking-type", fail: func(s *shoot) { s.Spec.Networking.Type = nil }, path: "spec.networking.type", value: ""},
	{rule: "networking-type", fail: func(s *shoot) { s.Spec.Networking = nil }, path: "spec.networking.type", value: ""},
	{rule: "networking-nodes", fail: func(s *shoot) { s.Spec.Networking.Nodes = nil }, path: "spec.networking.nodes", value: ""},
	{rule: "networking-cidr", pass: func(s *shoot) { s.Spec.Networking.Pods, s.Spec.Networking.Services = nil, nil }, fail: func(s *shoot) { s.Spec.Networking.Pods = new("100.64.0.1/11") }, path: "spec.networking.pods", value: `"100.64.0.1/11"`},
	{rule: "networking-cidr", fail: func(s *shoot) { s.Spec.Networking.Services = new("fd00::/108") }, path: "spec.networking.services", value: `"fd00::/108"`},
	{rule: "networking-overlap", pass: func(s *shoot) { s.Spec.Networking.Services = new("100.96.0.0/13") }, fail: func(s *shoot) { s.Spec.Networking.Services = new("100.95.0.0/16") }, path: "spec.networking.services", value: `"100.95.0.0/16, spec.networking.pods 100.64.0.0/11"`},

	{rule: "maintenance-window", pass: func(s *shoot) { s.Spec.Maintenance.TimeWindow = nil }, fail: func(s *shoot) { s.Spec.Maintenance.TimeWindow.Begin = "22:00" }, path: "spec.maintenance.timeWindow", value: `{"begin":"22:00","end":"230000+0000"}`},
	{rule: "maintenance-window-length", pass: func(s *shoot) {
		*s.Spec.Maintenance.TimeWindow = gardencorev1beta1.MaintenanceTimeWindow{Begin: "234500+0000", End: "001500+0000"}
	}, fail: func(s *shoot) { s.Spec.Maintenance.TimeWindow.End = "222900+0000" }, path: "spec.maintenance.timeWindow", value: `{"begin":"220000+0000","end":"222900+0000"}`},
	{rule: "maintenance-window-length", pass: func(s *shoot) { s.Spec.Maintenance.TimeWindow.End = "040000+0000" }, fail: func(s *shoot) { s.Spec.Maintenance.TimeWindow.End = "040100+0000" }, path: "spec.maintenance.timeWindow", value: `{"begin":"220000+0000","end":"040100+0000"}`},
	{rule: "confine-spec-update-rollout", pass: func(s *shoot) { s.Spec.Maintenance.ConfineSpecUpdateRollout = new(false) }, fail: func(s *shoot) { s.Spec.Maintenance.ConfineSpecUpdateRollout = new(true) }, path: "spec.maintenance.confineSpecUpdateRollout", value: "true"},
}

var workerCases = []ruleCase{
	{rule: "workers", fail: func(s *shoot) { s.Spec.Provider.Workers = nil }, path: "spec.provider.workers", value: ""},
	{rule: "worker-name", pass: worker(func(w *gardencorev1beta1.Worker) { w.Name = "0-a" }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Name = "Sys" }), path: pool0 + ".name", value: `"Sys"`},
	{rule: "worker-name-length", pass: worker(func(w *gardencorev1beta1.Worker) { w.Name = "fifteen-charact" }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Name = "sixteen-characte" }), path: pool0 + ".name", value: `"sixteen-characte"`},
	{rule: "worker-name-unique", pass: another(func(w *gardencorev1beta1.Worker) { w.Name = "other" }), fail: another(func(*gardencorev1beta1.Worker) {}), path: "spec.provider.workers[1].name", value: `"system"`},
	{rule: "worker-minimum", pass: worker(func(w *gardencorev1beta1.Worker) { w.Minimum = 0 }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Minimum = -1 }), path: pool0 + ".minimum", value: "-1"},
	{rule: "worker-maximum", pass: worker(func(w *gardencorev1beta1.Worker) { w.Minimum = 3 }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Minimum = 4 }), path: pool0 + ".maximum", value: "3"},
	{rule: "worker-rollout", pass: worker(func(w *gardencorev1beta1.Worker) {
		w.MaxSurge, w.MaxUnavailable = nil, new(intstr.FromInt32(1))
	}), fail: worker(func(w *gardencorev1beta1.Worker) { w.MaxSurge = new(intstr.FromString("0%")) }), path: pool0 + ".maxUnavailable", value: "0"},
	{rule: "worker-rollout-form", pass: worker(func(w *gardencorev1beta1.Worker) {
		w.MaxSurge, w.MaxUnavailable = new(intstr.FromString("200%")), new(intstr.FromString("100%"))
	}), fail: worker(func(w *gardencorev1beta1.Worker) { w.MaxUnavailable = new(intstr.FromString("101%")) }), path: pool0 + ".maxUnavailable", value: `"101%"`},
	{rule: "worker-rollout-form", fail: worker(func(w *gardencorev1beta1.Worker) { w.MaxSurge = new(intstr.FromInt32(-1)) }), path: pool0 + ".maxSurge", value: "-1"},
	{rule: "worker-rollout-form", fail: worker(func(w *gardencorev1beta1.Worker) { w.MaxSurge = new(intstr.FromString("one")) }), path: pool0 + ".maxSurge", value: `"one"`},
	{rule: "worker-machine-type", fail: worker(func(w *gardencorev1beta1.Worker) { w.Machine.Type = "" }), path: pool0 + ".machine.type", value: ""},
	{rule: "worker-architecture", pass: worker(func(w *gardencorev1beta1.Worker) { w.Machine.Architecture = new("arm64") }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Machine.Architecture = new("s390x") }), path: pool0 + ".machine.architecture", value: `"s390x"`},
	{rule: "worker-image", pass: worker(func(w *gardencorev1beta1.Worker) {
		w.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: "gardenlinux"}
	}), fail: worker(func(w *gardencorev1beta1.Worker) {
		w.Machine.Image = &gardencorev1beta1.ShootMachineImage{Version: new("1592.4.0")}
	}), path: pool0 + ".machine.image", value: `{"name":"","version":"1592.4.0"}`},
	{rule: "volume-size", pass: worker(func(w *gardencorev1beta1.Worker) { w.Volume.VolumeSize = "1024Gi" }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Volume.VolumeSize = "1Ti" }), path: pool0 + ".volume.size", value: `"1Ti"`},
	{rule: "data-volumes-need-volume", fail: worker(func(w *gardencorev1beta1.Worker) {
		w.Volume, w.DataVolumes = nil, []gardencorev1beta1.DataVolume{dataVolume("d", "1Gi", "gp3")}
	}), path: pool0 + ".volume", value: ""},
	{rule: "data-volume-name", pass: worker(func(w *gardencorev1beta1.Worker) {
		w.DataVolumes = []gardencorev1beta1.DataVolume{dataVolume("d", "1Gi", "gp3"), dataVolume("e", "1Gi", "gp3")}
	}), fail: worker(func(w *gardencorev1beta1.Worker) {
		w.DataVolumes = []gardencorev1beta1.DataVolume{dataVolume("d", "1Gi", "gp3"), dataVolume("d", "1Gi", "gp3")}
	}), path: pool0 + ".dataVolumes[1].name", value: `"d"`},
	{rule: "data-volume-size", fail: worker(func(w *gardencorev1beta1.Worker) {
		w.DataVolumes = []gardencorev1beta1.DataVolume{dataVolume("d", "lots", "gp3")}
	}), path: pool0 + ".dataVolumes[0].size", value: `"lots"`},
	{rule: "kubelet-data-volume", pass: worker(func(w *gardencorev1beta1.Worker) {
		w.DataVolumes, w.KubeletDataVolumeName = []gardencorev1beta1.DataVolume{dataVolume("d", "1Gi", "gp3")}, new("d")
	}), fail: worker(func(w *gardencorev1beta1.Worker) { w.KubeletDataVolumeName = new("d") }), path: pool0 + ".kubeletDataVolumeName", value: `"d"`},
	{rule: "worker-labels", pass: worker(func(w *gardencorev1beta1.Worker) { w.Labels["example.com/a"] = "" }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Labels["a"] = "b c" }), path: pool0 + ".labels[a]", value: `"b c"`},
	{rule: "worker-taints", pass: worker(func(w *gardencorev1beta1.Worker) {
		w.Taints = []corev1.Taint{{Key: "dedicated", Value: "tikv", Effect: "NoExecute"}}
	}), fail: worker(func(w *gardencorev1beta1.Worker) { w.Taints = []corev1.Taint{{Key: "dedicated", Effect: "Never"}} }), path: pool0 + ".taints[0]", value: `{"key":"dedicated","effect":"Never"}`},
	{rule: "worker-taints-unique", pass: worker(func(w *gardencorev1beta1.Worker) {
		w.Taints = []corev1.Taint{{Key: "a", Effect: "NoExecute"}, {Key: "a", Effect: "NoSchedule"}}
	}), fail: worker(func(w *gardencorev1beta1.Worker) {
		w.Taints = []corev1.Taint{{Key: "a", Value: "1", Effect: "NoExecute"}, {Key: "a", Value: "2", Effect: "NoExecute"}}
	}), path: pool0 + ".taints[1]", value: `{"key":"a","value":"2","effect":"NoExecute"}`},
	{rule: "system-components", pass: worker(func(w *gardencorev1beta1.Worker) { w.SystemComponents = nil }), fail: worker(func(w *gardencorev1beta1.Worker) { w.SystemComponents.Allow = false }), path: "spec.provider.workers", value: ""},
	{rule: "system-components", fail: worker(func(w *gardencorev1beta1.Worker) { w.Minimum, w.Maximum = 0, 0 }), path: "spec.provider.workers", value: ""},
	{rule: "system-components-zones", pass: func(s *shoot) {
		worker(func(w *gardencorev1beta1.Worker) { w.Maximum = 2 })(s)
		another(func(w *gardencorev1beta1.Worker) { w.Name, w.Maximum = "other", 3 })(s)
	}, fail: worker(func(w *gardencorev1beta1.Worker) { w.Maximum = 2 }), path: pool0 + ".maximum", value: "2"},
}

var awsCases = []ruleCase{
	// The configuration of another cloud.
	{rule: "config-of-the-cloud", fail: func(s *shoot) {
		s.Spec.Provider.InfrastructureConfig.Raw = []byte(`{"apiVersion":"gcp.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig"}`)
	}, path: infraAt, value: `"gcp.provider.extensions.gardener.cloud/v1alpha1/InfrastructureConfig"`},
	{rule: "config-of-the-cloud", gcp: true, fail: func(s *shoot) {
		s.Spec.Provider.InfrastructureConfig.Raw = []byte(`{"apiVersion":"aws.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig"}`)
	}, path: infraAt, value: `"aws.provider.extensions.gardener.cloud/v1alpha1/InfrastructureConfig"`},
	{rule: "config-of-the-cloud", gcp: true, fail: func(s *shoot) { s.Spec.Provider.ControlPlaneConfig = nil }, path: "spec.provider.controlPlaneConfig", value: ""},
	{rule: "config-of-the-cloud", gcp: true, pass: func(s *shoot) { s.Spec.Provider.Workers[0].ProviderConfig = nil }, fail: func(s *shoot) {
		s.Spec.Provider.Workers[0].ProviderConfig.Raw = []byte(`{"apiVersion":"gcp.provider.extensions.gardener.cloud/v1alpha1","kind":"ControlPlaneConfig"}`)
	}, path: config0, value: `"gcp.provider.extensions.gardener.cloud/v1alpha1/ControlPlaneConfig"`},
	{rule: "config-of-the-cloud", fail: func(s *shoot) { s.Spec.Provider.InfrastructureConfig.Raw = []byte(`{`) }, path: infraAt, value: `""`},
	{rule: "config-fields", fail: func(s *shoot) {
		s.Spec.Provider.InfrastructureConfig.Raw = []byte(`{"apiVersion":"aws.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig","netwerks":{}}`)
	}, path: infraAt, value: `"unknown field \"netwerks\""`},
	{rule: "config-fields", gcp: true, fail: func(s *shoot) {
		s.Spec.Provider.ControlPlaneConfig.Raw = []byte(`{"apiVersion":"gcp.provider.extensions.gardener.cloud/v1alpha1","kind":"ControlPlaneConfig","zone":3}`)
	}, path: "spec.provider.controlPlaneConfig", value: `"cannot unmarshal number into Go struct field GCPControlPlaneConfig.zone of type string"`},

	{rule: "aws-vpc", pass: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC = builders.AWSVPC{ID: new("vpc-1")} }),
		fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC.ID = new("vpc-1") }), path: networks + ".vpc", value: `{"id":"vpc-1","cidr":"10.250.0.0/16","gatewayEndpoints":["s3"]}`},
	{rule: "aws-vpc", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC = builders.AWSVPC{} }), path: networks + ".vpc", value: "{}"},
	{rule: "aws-vpc-cidr", pass: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC.CIDR = new("10.250.0.0/15") }),
		fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC.CIDR = new("10.250.0.0/17") }), path: networks + ".vpc.cidr", value: `"10.250.0.0/17"`},
	{rule: "aws-vpc-cidr", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC.CIDR = new("10.250.0.1/16") }), path: networks + ".vpc.cidr", value: `"10.250.0.1/16"`},
	{rule: "aws-gateway-endpoints", pass: infra(func(c *builders.AWSInfrastructureConfig) {
		c.Networks.VPC.GatewayEndpoints = []string{"s3", "dynamodb"}
	}), fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC.GatewayEndpoints = []string{"s3", "a b"} }), path: networks + ".vpc.gatewayEndpoints[1]", value: `"a b"`},
	{rule: "aws-zones", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.Zones = nil }), path: networks + ".zones", value: ""},
	{rule: "aws-zone-name", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.Zones[1].Name = "us-west-2a" }), path: networks + ".zones[1].name", value: `"us-west-2a"`},
	{rule: "aws-zone-cidr", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.Zones[2].Public = "10.250.1.1/24" }), path: networks + ".zones[2].public", value: `"10.250.1.1/24"`},
	{rule: "aws-zone-within", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.Zones[0].Internal = "10.251.0.0/22" }), path: networks + ".zones[0].internal", value: `"10.251.0.0/22"`},
	{rule: "aws-zone-within", pass: func(s *shoot) { // public and internal may lie outside of the nodes' range
		s.Spec.Networking.Nodes = new("10.250.0.0/17")
	}, fail: func(s *shoot) { s.Spec.Networking.Nodes = new("10.250.0.0/18") }, path: networks + ".zones[2].workers", value: `"10.250.64.0/19"`},
	{rule: "aws-disjoint", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.Zones[0].Internal = "10.250.0.0/22" }), path: networks + ".zones[0].internal", value: `"10.250.0.0/22, spec.provider.infrastructureConfig.networks.zones[0].workers 10.250.0.0/19"`},
	{rule: "aws-disjoint", fail: func(s *shoot) { s.Spec.Networking.Pods = new("10.250.0.0/20") }, path: networks + ".vpc.cidr", value: `"10.250.0.0/16, spec.networking.pods 10.250.0.0/20"`},
	{rule: "aws-existing-subnets", pass: infra(func(c *builders.AWSInfrastructureConfig) {
		c.Networks.VPC = builders.AWSVPC{ID: new("vpc-1")}
		for i := range c.Networks.Zones {
			z := &c.Networks.Zones[i]
			*z = builders.AWSZone{Name: z.Name, WorkersSubnetID: new("subnet-1"), PublicSubnetID: new("subnet-2"), InternalSubnetID: new("subnet-3")}
		}
	}), fail: infra(func(c *builders.AWSInfrastructureConfig) {
		c.Networks.Zones[0] = builders.AWSZone{Name: "us-west-2a", WorkersSubnetID: new("subnet-1")}
	}), path: networks + ".zones[0]", value: `{"name":"us-west-2a","workers":"","public":"","internal":"","workersSubnetID":"subnet-1"}`},
	{rule: "aws-elastic-ip", pass: infra(func(c *builders.AWSInfrastructureConfig) {
		c.Networks.Zones[0].ElasticIPAllocationID, c.Networks.Zones[1].ElasticIPAllocationID = new("eipalloc-1"), new("eipalloc-2")
	}), fail: infra(func(c *builders.AWSInfrastructureConfig) {
		c.Networks.Zones[0].ElasticIPAllocationID, c.Networks.Zones[1].ElasticIPAllocationID = new("eipalloc-1"), new("eipalloc-1")
	}), path: networks + ".zones[1].elasticIPAllocationID", value: `"eipalloc-1"`},
	{rule: "aws-elastic-ip", fail: infra(func(c *builders.AWSInfrastructureConfig) {
		c.Networks.Zones[0].ElasticIPAllocationID = new("203.0.113.7")
	}), path: networks + ".zones[0].elasticIPAllocationID", value: `"203.0.113.7"`},
	{rule: "aws-ignore-tags", pass: infra(func(c *builders.AWSInfrastructureConfig) { c.IgnoreTags.Keys = []string{"Owner"} }),
		fail: infra(func(c *builders.AWSInfrastructureConfig) { c.IgnoreTags.Keys = []string{"Name"} }), path: infraAt + ".ignoreTags.keys[0]", value: `"Name"`},
	{rule: "aws-ignore-tags", fail: infra(func(c *builders.AWSInfrastructureConfig) { c.IgnoreTags.KeyPrefixes = []string{"kube"} }), path: infraAt + ".ignoreTags.keyPrefixes[0]", value: `"kube"`},
	{rule: "aws-worker-volume", fail: worker(func(w *gardencorev1beta1.Worker) { w.Volume = nil }), path: pool0 + ".volume", value: ""},
	{rule: "aws-worker-volume", fail: worker(func(w *gardencorev1beta1.Worker) { w.Volume.Type = nil }), path: pool0 + ".volume.type", value: ""},
	{rule: "aws-worker-volume", fail: worker(func(w *gardencorev1beta1.Worker) {
		w.DataVolumes = []gardencorev1beta1.DataVolume{{Name: "d", VolumeSize: "1Gi"}}
	}), path: pool0 + ".dataVolumes[0].type", value: ""},
	{rule: "aws-worker-iops", pass: func(s *shoot) {
		worker(func(w *gardencorev1beta1.Worker) { w.Volume.Type = new("io1") })(s)
		awsWorker(func(c *builders.AWSWorkerConfig) { c.Volume = &builders.AWSVolume{IOPS: new(int64(1000))} })(s)
	}, fail: worker(func(w *gardencorev1beta1.Worker) { w.Volume.Type = new("io1") }), path: pool0 + ".volume.type", value: `"io1"`},
	{rule: "aws-worker-iops", pass: awsWorker(func(c *builders.AWSWorkerConfig) {
		c.Volume = &builders.AWSVolume{Throughput: new(int64(250))}
	}), fail: awsWorker(func(c *builders.AWSWorkerConfig) { c.Volume = &builders.AWSVolume{IOPS: new(int64(0))} }), path: config0 + ".volume.iops", value: "0"},
	{rule: "aws-worker-iops", fail: awsWorker(func(c *builders.AWSWorkerConfig) {
		c.Volume = &builders.AWSVolume{Throughput: new(int64(-1))}
	}), path: config0 + ".volume.throughput", value: "-1"},
	{rule: "aws-data-volumes", pass: worker(func(w *gardencorev1beta1.Worker) { w.DataVolumes = many(11) }), fail: worker(func(w *gardencorev1beta1.Worker) { w.DataVolumes = many(12) }), path: pool0 + ".dataVolumes", value: "12"},
	{rule: "aws-worker-zones", fail: worker(func(w *gardencorev1beta1.Worker) { w.Zones = []string{"us-west-2a", "us-west-2d"} }), path: pool0 + ".zones[1]", value: `"us-west-2d"`},
	{rule: "aws-worker-zones", fail: worker(func(w *gardencorev1beta1.Worker) { w.Zones = nil }), path: pool0 + ".zones", value: ""},
	{rule: "aws-instance-metadata", pass: awsWorker(func(c *builders.AWSWorkerConfig) {
		c.InstanceMetadataOptions = &builders.AWSInstanceMetadataOptions{HTTPTokens: "optional", HTTPPutResponseHopLimit: 64}
	}), fail: awsWorker(func(c *builders.AWSWorkerConfig) { c.InstanceMetadataOptions.HTTPPutResponseHopLimit = 65 }), path: config0 + ".instanceMetadataOptions.httpPutResponseHopLimit", value: "65"},
	{rule: "aws-instance-metadata", fail: awsWorker(func(c *builders.AWSWorkerConfig) { c.InstanceMetadataOptions.HTTPTokens = "yes" }), path: config0 + ".instanceMetadataOptions.httpTokens", value: `"yes"`},
	{rule: "aws-instance-profile", pass: awsWorker(func(c *builders.AWSWorkerConfig) {
		c.IAMInstanceProfile = &builders.AWSInstanceProfile{Name: new("nodes")}
	}), fail: awsWorker(func(c *builders.AWSWorkerConfig) { c.IAMInstanceProfile = &builders.AWSInstanceProfile{} }), path: config0 + ".iamInstanceProfile", value: "{}"},
}

func many(n int) (out []gardencorev1beta1.DataVolume) {
	for i := range n {
		out = append(out, dataVolume(string(rune('a'+i)), "1Gi", "gp3"))
	}
	return out
}

var gcpCases = []ruleCase{
	{rule: "gcp-workers-cidr", gcp: true, pass: gcpInfra(func(n *builders.GCPNetworks) { n.Workers = "10.250.0.0/17" }), fail: gcpInfra(func(n *builders.GCPNetworks) { n.Workers = "10.252.0.0/16" }), path: networks + ".workers", value: `"10.252.0.0/16"`},
	{rule: "gcp-workers-cidr", gcp: true, fail: gcpInfra(func(n *builders.GCPNetworks) { n.Workers = "" }), path: networks + ".workers", value: ""},
	{rule: "gcp-worker-deprecated", gcp: true, fail: gcpInfra(func(n *builders.GCPNetworks) { n.Worker = "10.250.0.0/16" }), path: networks + ".worker", value: `"10.250.0.0/16"`},
	{rule: "gcp-internal-cidr", gcp: true, pass: gcpInfra(func(n *builders.GCPNetworks) { n.Internal = new("10.252.0.0/22") }), fail: gcpInfra(func(n *builders.GCPNetworks) { n.Internal = new("10.250.4.0/22") }), path: networks + ".internal", value: `"10.250.4.0/22"`},
	{rule: "gcp-internal-cidr", gcp: true, fail: gcpInfra(func(n *builders.GCPNetworks) { n.Internal = new("100.104.4.0/22") }), path: networks + ".internal", value: `"100.104.4.0/22"`},
	{rule: "gcp-vpc", gcp: true, pass: gcpInfra(func(n *builders.GCPNetworks) {
		n.VPC = &builders.GCPVPC{Name: "shared", CloudRouter: &builders.GCPCloudRouter{Name: "r"}}
	}), fail: gcpInfra(func(n *builders.GCPNetworks) { n.VPC = &builders.GCPVPC{Name: "shared"} }), path: networks + ".vpc", value: `{"name":"shared"}`},
	{rule: "gcp-nat", gcp: true, pass: gcpInfra(func(n *builders.GCPNetworks) {
		n.CloudNAT.NATIPNames = []builders.GCPNATIPName{{Name: "a"}, {Name: "b"}}
	}),
		fail: gcpInfra(func(n *builders.GCPNetworks) {
			n.CloudNAT.NATIPNames = []builders.GCPNATIPName{{Name: "a"}, {Name: "a"}}
		}), path: networks + ".cloudNAT.natIPNames[1].name", value: `"a"`},
	{rule: "gcp-nat", gcp: true, pass: gcpInfra(func(n *builders.GCPNetworks) { n.CloudNAT = nil }), fail: gcpInfra(func(n *builders.GCPNetworks) { n.CloudNAT.MinPortsPerVM = new(int32(16)) }), path: networks + ".cloudNAT.minPortsPerVM", value: "16"},
	{rule: "gcp-control-plane-zone", gcp: true, pass: gcpControl(func(c *builders.GCPControlPlaneConfig) { c.Zone = "us-central1-c" }), fail: gcpControl(func(c *builders.GCPControlPlaneConfig) { c.Zone = "us-central1-f" }), path: "spec.provider.controlPlaneConfig.zone", value: `"us-central1-f"`},
	{rule: "gcp-control-plane-zone", gcp: true, fail: gcpControl(func(c *builders.GCPControlPlaneConfig) { c.Zone = "" }), path: "spec.provider.controlPlaneConfig.zone", value: ""},
	{rule: "gcp-worker-volume", gcp: true, fail: worker(func(w *gardencorev1beta1.Worker) { w.Volume.Type = new("") }), path: pool0 + ".volume.type", value: ""},
	{rule: "gcp-boot-disk", gcp: true, pass: worker(func(w *gardencorev1beta1.Worker) { w.Volume.Type = new("pd-ssd") }), fail: worker(func(w *gardencorev1beta1.Worker) { w.Volume.Type = new("SCRATCH") }), path: pool0 + ".volume.type", value: `"SCRATCH"`},
	{rule: "gcp-scratch-interface", gcp: true, pass: func(s *shoot) {
		worker(func(w *gardencorev1beta1.Worker) {
			w.DataVolumes = []gardencorev1beta1.DataVolume{dataVolume("d", "375Gi", "SCRATCH")}
		})(s)
		gcpWorker(func(c *builders.GCPWorkerConfig) { c.Volume = &builders.GCPVolume{LocalSSDInterface: new("NVME")} })(s)
	}, fail: worker(func(w *gardencorev1beta1.Worker) {
		w.DataVolumes = []gardencorev1beta1.DataVolume{dataVolume("d", "375Gi", "SCRATCH")}
	}), path: pool0 + ".dataVolumes[0].type", value: `"SCRATCH"`},
	{rule: "gcp-worker-zones", gcp: true, fail: another(func(w *gardencorev1beta1.Worker) { w.Name, w.Zones = "other", nil }), path: "spec.provider.workers[1].zones", value: ""},
	{rule: "gcp-service-account", gcp: true, pass: gcpWorker(func(c *builders.GCPWorkerConfig) { c.ServiceAccount = nil }), fail: gcpWorker(func(c *builders.GCPWorkerConfig) { c.ServiceAccount.Email = "" }),
		path: config0 + ".serviceAccount", value: `{"email":"","scopes":["https://www.googleapis.com/auth/cloud-platform"]}`},
	{rule: "gcp-service-account", gcp: true, pass: gcpWorker(func(c *builders.GCPWorkerConfig) { c.ServiceAccount.Scopes = []string{"b", "a"} }), fail: gcpWorker(func(c *builders.GCPWorkerConfig) { c.ServiceAccount.Scopes = []string{"a", "b", "a"} }),
		path: config0 + ".serviceAccount", value: `{"email":"nodes@p.iam.gserviceaccount.com","scopes":["a","b","a"]}`},
	{rule: "gcp-disk-encryption", gcp: true, pass: gcpWorker(func(c *builders.GCPWorkerConfig) {
		c.Volume = &builders.GCPVolume{Encryption: &builders.GCPDiskEncryption{KMSKeyName: new("projects/p/locations/l/keyRings/r/cryptoKeys/k")}}
	}), fail: gcpWorker(func(c *builders.GCPWorkerConfig) {
		c.Volume = &builders.GCPVolume{Encryption: &builders.GCPDiskEncryption{KMSKeyServiceAccount: new("sa")}}
	}), path: config0 + ".volume.encryption", value: `{"kmsKeyServiceAccount":"sa"}`},
}
