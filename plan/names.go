package plan

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// ProjectNamespace is the namespace of a Gardener project.
func ProjectNamespace(project string) string { return projectPrefix + project }

const projectPrefix = "garden-"

// ShootName is the name of a Network's Shoot: spec.shootName, or n- and 7
// hexadecimal digits of the SHA-256 of namespace/name.
func ShootName(n *v1.Network) string {
	if n.Spec.ShootName != "" {
		return n.Spec.ShootName
	}
	sum := sha256.Sum256([]byte(n.Namespace + "/" + n.Name))
	return "n-" + hex.EncodeToString(sum[:])[:7]
}

// ShootKey identifies the Shoot of a Network among all Shoots: names are unique
// within a project, whatever the region.
func ShootKey(n *v1.Network, provider *v1.Provider, o Options) string {
	s := shootRef(n, provider, o)
	return s.Namespace + "/" + s.Name
}

// BindingName is the name of a Provider's binding, and of its Secret, in the
// garden.
func BindingName(provider contract.ObjectRef) string { return provider.Name + "-" + provider.ID8() }

// bucketName is globally unique: bucket names are shared by all of AWS.
func bucketName(network contract.ObjectRef, accountID string) string {
	return "ic-" + network.ID8() + "-" + accountID[max(0, len(accountID)-6):] + "-data"
}

func roleName(cluster contract.ObjectRef) string { return "ic-" + cluster.ID8() + "-db" }

func keyAlias(cluster contract.ObjectRef) string { return "alias/ic-" + cluster.ID8() + "-data" }

func clusterNamespace(cluster contract.ObjectRef) string { return "tidb-" + cluster.ID8() }

// tidbClusterName is the TidbCluster's name; its namespace is the cluster's own.
const tidbClusterName = "db"
