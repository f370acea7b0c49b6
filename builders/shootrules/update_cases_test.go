package shootrules

import (
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/builders"
)

// updateCase is a change that passes a rule, and one that breaks it, from a
// good Shoot that old has changed.
type updateCase struct {
	rule            string
	gcp             bool
	old, pass, fail func(*shoot)
	path, value     string
}

func version(v string) func(*shoot) { return func(s *shoot) { s.Spec.Kubernetes.Version = v } }

func deleting(s *shoot) {
	s.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
}

var updateCases = []updateCase{
	{rule: "update-while-deleting", old: deleting, pass: func(s *shoot) { s.Annotations["a"] = "b" }, fail: func(s *shoot) { s.Spec.Provider.Workers[0].Maximum = 4 }, path: "spec", value: `"2026-08-01T12:00:00Z"`},
	{rule: "update-region", fail: func(s *shoot) { s.Spec.Region = "us-east-1" }, path: "spec.region", value: `"us-east-1"`},
	{rule: "update-provider-type", fail: func(s *shoot) { s.Spec.Provider.Type = "gcp" }, path: "spec.provider.type", value: `"gcp"`},
	{rule: "update-networking", pass: func(s *shoot) { s.Spec.Networking.Nodes = new("10.250.0.0/17") }, fail: func(s *shoot) { s.Spec.Networking.Type = new("cilium") }, path: "spec.networking.type", value: `"cilium"`},
	{rule: "update-networking", old: func(s *shoot) { s.Spec.Networking.Services = nil }, pass: func(s *shoot) { s.Spec.Networking.Services = new("100.96.0.0/16") }, fail: func(s *shoot) { s.Spec.Networking.Pods = nil }, path: "spec.networking.pods", value: "null"},
	{rule: "update-seed", old: func(s *shoot) { s.Spec.SeedName = nil }, pass: func(s *shoot) { s.Spec.SeedName = new("seed-b") }, path: "", value: ""},
	{rule: "update-seed", fail: func(s *shoot) { s.Spec.SeedName = new("seed-b") }, path: "spec.seedName", value: `"seed-b"`},
	{rule: "update-version-down", old: version("1.34"), pass: version("1.34.1"), fail: version("1.33.5"), path: "spec.kubernetes.version", value: `"1.33.5"`},
	{rule: "update-version-down", old: version("1.34.5"), pass: version("1.34.5"), fail: version("1.34.4"), path: "spec.kubernetes.version", value: `"1.34.4"`},
	{rule: "update-version-skip", old: version("1.33.7"), pass: version("1.34.0"), fail: version("1.35"), path: "spec.kubernetes.version", value: `"1.35"`},
	{rule: "update-secret-binding", old: func(s *shoot) { s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = new("x"), nil },
		pass: func(s *shoot) { s.Spec.SecretBindingName, s.Spec.CredentialsBindingName = nil, new("x") },
		fail: func(s *shoot) { s.Spec.SecretBindingName = new("y") }, path: "spec.secretBindingName", value: `"y"`},
	{rule: "update-credentials-binding", pass: func(s *shoot) { s.Spec.CredentialsBindingName = new("other") }, fail: func(s *shoot) { s.Spec.CredentialsBindingName = nil }, path: "spec.credentialsBindingName", value: ""},
	{rule: "update-workers", pass: another(func(w *gardencorev1beta1.Worker) { w.Name = "other" }), fail: func(s *shoot) { s.Spec.Provider.Workers = nil }, path: "spec.provider.workers", value: "0"},
	{rule: "update-worker-zones", fail: worker(func(w *gardencorev1beta1.Worker) { w.Zones = w.Zones[:2] }), path: pool0 + ".zones", value: `["us-west-2a","us-west-2b"]`},
	{rule: "update-dns-domain", pass: func(s *shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("a.example.com")} }},
	{rule: "update-dns-domain", old: func(s *shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("a.example.com")} }, fail: func(s *shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("b.example.com")} }, path: "spec.dns.domain", value: `{"domain":"b.example.com"}`},
	{rule: "update-issuer", fail: func(s *shoot) { delete(s.Annotations, "authentication.gardener.cloud/issuer") }, path: "metadata.annotations[authentication.gardener.cloud/issuer]", value: `""`},
	{rule: "update-aws-vpc", pass: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC.GatewayEndpoints = nil }),
		fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.VPC.CIDR = new("10.250.0.0/15") }), path: networks + ".vpc", value: `{"cidr":"10.250.0.0/15","gatewayEndpoints":["s3"]}`},
	{rule: "update-aws-zones", pass: infra(func(c *builders.AWSInfrastructureConfig) {
		c.Networks.Zones = append(c.Networks.Zones, builders.AWSZone{Name: "us-west-2d", Workers: "10.250.96.0/19", Public: "10.250.204.0/22", Internal: "10.250.236.0/22"})
	}), fail: infra(func(c *builders.AWSInfrastructureConfig) { c.Networks.Zones = c.Networks.Zones[:2] }), path: networks + ".zones", value: `"us-west-2c"`},
	{rule: "update-aws-zones", fail: infra(func(c *builders.AWSInfrastructureConfig) { slices.Reverse(c.Networks.Zones[:2]) }), path: networks + ".zones[0]",
		value: `{"name":"us-west-2b","workers":"10.250.32.0/19","public":"10.250.196.0/22","internal":"10.250.228.0/22"}`},
	{rule: "update-gcp-vpc", gcp: true, pass: gcpInfra(func(n *builders.GCPNetworks) { n.Internal = new("10.252.0.0/22") }), fail: gcpInfra(func(n *builders.GCPNetworks) {
		n.VPC = &builders.GCPVPC{Name: "shared", CloudRouter: &builders.GCPCloudRouter{Name: "r"}}
	}), path: networks + ".vpc", value: `{"name":"shared","cloudRouter":{"name":"r"}}`},
	{rule: "update-gcp-workers-cidr", gcp: true, old: gcpInfra(func(n *builders.GCPNetworks) { n.Workers = "10.250.0.0/17" }), pass: gcpInfra(func(n *builders.GCPNetworks) { n.Workers = "10.250.0.0/16" }),
		fail: gcpInfra(func(n *builders.GCPNetworks) { n.Workers = "10.250.0.0/18" }), path: networks + ".workers", value: `"10.250.0.0/18"`},
	{rule: "update-gcp-control-plane-zone", gcp: true, fail: gcpControl(func(c *builders.GCPControlPlaneConfig) { c.Zone = "us-central1-b" }), path: "spec.provider.controlPlaneConfig.zone", value: `"us-central1-b"`},
}
