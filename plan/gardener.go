package plan

import (
	"strconv"
	"strings"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// What Gardener 1.149 takes. Package builders/shootrules holds all its rules
// for Shoots; these are the ones that a Network can break although the schema
// admits it.
const (
	oldestKubernetes = 32 // of Kubernetes 1
	newestKubernetes = 36
	// credentialsBindingsOnly is the first version without SecretBindings.
	credentialsBindingsOnly = 34
)

// checkGardener holds the rules for Shoots that do not exist yet.
func checkGardener(n *v1.Network, provider *v1.Provider, pt *v1.ProviderType, o Options) *problems {
	var p problems
	if name := ShootName(n); strings.Contains(name, "--") {
		p.add("spec.shootName", name, "Gardener allows no two dashes in a row; remove one")
	}
	if name := project(provider, o); strings.Contains(name, "--") {
		p.add("spec.provider", n.Spec.Provider, "its Gardener project %s has two dashes in a row, which Gardener does not allow; use a Provider of another project", name)
	}
	if pt.Spec.Cloud == v1.CloudAWS && nodeVolumeType(pt) == "" {
		p.add("spec.provider", n.Spec.Provider, "ProviderType %s has no storage class of type gp2 or gp3 for the nodes' own disks; add one there", pt.Name)
	}
	const path = "spec.kubernetesVersion"
	version := or(n.Spec.KubernetesVersion, pt.Spec.Gardener.KubernetesVersion)
	minor, ok := minorVersion(version)
	switch {
	case !ok || minor < oldestKubernetes || minor > newestKubernetes:
		p.add(path, version, "Gardener runs 1.%d to 1.%d; choose one of these", oldestKubernetes, newestKubernetes)
	case minor >= credentialsBindingsOnly && pt.Spec.Gardener.CredentialsKind == "SecretBinding":
		p.add(path, version, "ProviderType %s binds credentials with SecretBindings, which end with Kubernetes 1.%d; choose an older version, or a ProviderType with gardener.credentialsKind CredentialsBinding",
			pt.Name, credentialsBindingsOnly-1)
	}
	return &p
}

// minorVersion is 33 of 1.33 and of 1.33.5.
func minorVersion(version v1.KubernetesVersion) (int, bool) {
	parts := strings.Split(string(version), ".")
	if len(parts) < 2 || parts[0] != "1" {
		return 0, false
	}
	minor, err := strconv.Atoi(parts[1])
	return minor, err == nil
}
