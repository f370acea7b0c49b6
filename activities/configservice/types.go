// Package configservice reads versioned configuration from the config-service
// over HTTP. Documents are addressed by the SHA-256 of their bytes, so they
// never change and are cached for the life of the worker.
//
//	GET /v1/network-config?cloud=&region=&tenant=                    -> {"hash": "<sha256 hex>"}
//	GET /v1/cluster-config?cloud=&region=&tenant=&operator=&version= -> {"hash": "<sha256 hex>"}
//	GET /v1/configs/<hash>                                           -> the YAML document
//
// 404 with {"message": "…"} means that nothing fits.
package configservice

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// NetworkConfig is what a Network's shoot is bootstrapped with.
type NetworkConfig struct {
	Kind string `json:"kind"` // NetworkConfig
	// OperatorVersion of TiDB Operator, such as v1.6.6.
	OperatorVersion string `json:"operatorVersion"`
	// Manifests are Kubernetes objects: CRDs, namespaces, service accounts,
	// Deployments.
	Manifests []unstructured.Unstructured `json:"manifests"`
}

// ClusterConfig is what a Cluster of one version runs with.
type ClusterConfig struct {
	Kind string `json:"kind"` // ClusterConfig
	// Version of TiDB, such as v8.5.2.
	Version string `json:"version"`
	Images  Images `json:"images"`
	// Config is TOML text for each component; empty for the defaults.
	Config ComponentConfig `json:"config"`
}

// Images are full image references: repository:tag.
type Images struct {
	PD          string `json:"pd"`
	TiKV        string `json:"tikv"`
	TiDB        string `json:"tidb"`
	TiFlash     string `json:"tiflash,omitempty"`
	Helper      string `json:"helper,omitempty"`
	Initializer string `json:"initializer,omitempty"`
	Backup      string `json:"backup,omitempty"` // BR
}

// ComponentConfig is TOML text for each component.
type ComponentConfig struct {
	PD      string `json:"pd,omitempty"`
	TiKV    string `json:"tikv,omitempty"`
	TiDB    string `json:"tidb,omitempty"`
	TiFlash string `json:"tiflash,omitempty"`
}

// Image of a component: pd, tikv, tidb or tiflash; empty for any other name.
func (c *ClusterConfig) Image(component string) string {
	return pick(component, c.Images.PD, c.Images.TiKV, c.Images.TiDB, c.Images.TiFlash)
}

// TOML of a component: pd, tikv, tidb or tiflash; empty for any other name.
func (c *ClusterConfig) TOML(component string) string {
	return pick(component, c.Config.PD, c.Config.TiKV, c.Config.TiDB, c.Config.TiFlash)
}

func pick(component, pd, tikv, tidb, tiflash string) string {
	switch component {
	case "pd":
		return pd
	case "tikv":
		return tikv
	case "tidb":
		return tidb
	case "tiflash":
		return tiflash
	}
	return ""
}
