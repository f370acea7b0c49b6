// Package v1 holds the kinds of API group cloud.pingcap.com/v1.
//
// A field of a later release is part of the types already, and a rule of the
// schema refuses every value that nothing acts on yet: an accepted field is
// never ignored. "Immutable" and "allowed value" are two rules, as a rule that
// mentions oldSelf is not run when an object is created.
//
// +kubebuilder:object:generate=true
// +groupName=cloud.pingcap.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind of this package.
const GroupName = "cloud.pingcap.com"

var (
	// GroupVersion is the group and version of every kind of this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

	// SchemeBuilder collects the functions that add this package to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds every kind of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Names of the kinds.
const (
	KindAccount      = "Account"
	KindProviderType = "ProviderType"
	KindProvider     = "Provider"
	KindNetwork      = "Network"
	KindCluster      = "Cluster"
	KindNetworkPeer  = "NetworkPeer"
	KindBackup       = "Backup"
	KindRestore      = "Restore"
	KindImport       = "Import"
	KindTiCDC        = "TiCDC"
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Account{}, &AccountList{},
		&ProviderType{}, &ProviderTypeList{},
		&Provider{}, &ProviderList{},
		&Network{}, &NetworkList{},
		&Cluster{}, &ClusterList{},
		&NetworkPeer{}, &NetworkPeerList{},
		&Backup{}, &BackupList{},
		&Restore{}, &RestoreList{},
		&Import{}, &ImportList{},
		&TiCDC{}, &TiCDCList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
