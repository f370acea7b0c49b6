package v1

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KindSecret is the kind of the Secrets that objects refer to.
const KindSecret = "Secret"

// Kind is what everybody has to know of a kind: the one row for it.
// +kubebuilder:object:generate=false
type Kind struct {
	// Name is the kind, Plural its name in URLs, Short what else kubectl and
	// infractl take for it.
	Name, Plural string
	Short        []string
	// HasWorkflow: it has an object workflow and operations, and a finalizer
	// that only these take away. All others are recorded.
	HasWorkflow bool
	New         func() Object
	NewList     func() client.ObjectList
	// References to other objects of the namespace.
	References []Reference
}

// Reference is a field that names another object.
// +kubebuilder:object:generate=false
type Reference struct {
	// Kind of the object that is named, and the field that names it.
	Kind, Field string
	// Keeps: the object that is named is not deleted before this one.
	Keeps bool
	name  func(Object) string
}

// Name is what the field names in an object of the Reference's kind; empty for
// nothing.
func (r Reference) Name(o Object) string { return r.name(o) }

// reference ties a field to a kind's Go type.
func reference[T Object](kind, field string, keeps bool, name func(T) string) Reference {
	return Reference{Kind: kind, Field: field, Keeps: keeps, name: func(o Object) string {
		if o, ok := o.(T); ok {
			return name(o)
		}
		return ""
	}}
}

func secretName(s *SecretReference) string {
	if s == nil {
		return ""
	}
	return s.Name
}

var kinds = []Kind{
	{Name: KindAccount, Plural: "accounts", Short: []string{"acct"},
		New: func() Object { return &Account{} }, NewList: func() client.ObjectList { return &AccountList{} }},
	{Name: KindProviderType, Plural: "providertypes", Short: []string{"ptype", "pt"}, HasWorkflow: true,
		New: func() Object { return &ProviderType{} }, NewList: func() client.ObjectList { return &ProviderTypeList{} }},
	{Name: KindProvider, Plural: "providers", Short: []string{"prov"}, HasWorkflow: true,
		New: func() Object { return &Provider{} }, NewList: func() client.ObjectList { return &ProviderList{} },
		References: []Reference{
			reference(KindProviderType, "spec.type", true, func(p *Provider) string { return string(p.Spec.Type) }),
			reference(KindAccount, "spec.account", true, func(p *Provider) string { return string(p.Spec.Account) }),
			reference(KindSecret, "spec.credentials.secretRef.name", true, func(p *Provider) string { return secretName(p.Spec.Credentials.SecretRef) }),
		}},
	{Name: KindNetwork, Plural: "networks", Short: []string{"net", "nets"}, HasWorkflow: true,
		New: func() Object { return &Network{} }, NewList: func() client.ObjectList { return &NetworkList{} },
		References: []Reference{
			reference(KindProvider, "spec.provider", true, func(n *Network) string { return string(n.Spec.Provider) }),
		}},
	{Name: KindNetworkPeer, Plural: "networkpeers", Short: []string{"peer"},
		New: func() Object { return &NetworkPeer{} }, NewList: func() client.ObjectList { return &NetworkPeerList{} },
		References: []Reference{
			reference(KindNetwork, "spec.source", true, func(p *NetworkPeer) string { return string(p.Spec.Source) }),
			reference(KindNetwork, "spec.target", true, func(p *NetworkPeer) string { return p.Spec.Target }),
		}},
	{Name: KindCluster, Plural: "clusters", Short: []string{"tidb"}, HasWorkflow: true,
		New: func() Object { return &Cluster{} }, NewList: func() client.ObjectList { return &ClusterList{} },
		References: []Reference{
			reference(KindNetwork, "spec.network", true, func(c *Cluster) string { return string(c.Spec.Network) }),
			reference(KindSecret, "spec.rootPasswordSecretRef.name", false, func(c *Cluster) string { return secretName(c.Spec.RootPasswordSecretRef) }),
		}},
	{Name: KindBackup, Plural: "backups", Short: []string{"bk"},
		New: func() Object { return &Backup{} }, NewList: func() client.ObjectList { return &BackupList{} },
		References: []Reference{
			reference(KindCluster, "spec.clusterName", false, func(b *Backup) string { return string(b.Spec.ClusterName) }),
		}},
	{Name: KindRestore, Plural: "restores", Short: []string{"rst"},
		New: func() Object { return &Restore{} }, NewList: func() client.ObjectList { return &RestoreList{} },
		References: []Reference{
			reference(KindCluster, "spec.clusterName", false, func(r *Restore) string { return string(r.Spec.ClusterName) }),
			reference(KindBackup, "spec.backupName", true, func(r *Restore) string { return string(r.Spec.BackupName) }),
		}},
	{Name: KindImport, Plural: "imports", Short: []string{"imp"},
		New: func() Object { return &Import{} }, NewList: func() client.ObjectList { return &ImportList{} },
		References: []Reference{
			reference(KindCluster, "spec.clusterName", false, func(i *Import) string { return string(i.Spec.ClusterName) }),
		}},
	{Name: KindTiCDC, Plural: "ticdcs", Short: []string{"cdc"},
		New: func() Object { return &TiCDC{} }, NewList: func() client.ObjectList { return &TiCDCList{} },
		References: []Reference{
			reference(KindNetwork, "spec.network", true, func(t *TiCDC) string { return string(t.Spec.Network) }),
			reference(KindCluster, "spec.upstream.clusterName", true, func(t *TiCDC) string { return string(t.Spec.Upstream.ClusterName) }),
			reference(KindCluster, "spec.downstream.clusterName", true, func(t *TiCDC) string { return t.Spec.Downstream.ClusterName }),
		}},
}

// Kinds are all kinds of this group, in the order in which they build on each
// other.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf is the row of a kind; false for one of another group.
func KindOf(name string) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// KindOfObject is the row of an object's kind, by its Go type: objects of a
// typed cache do not say it themselves.
func KindOfObject(o client.Object) (Kind, bool) {
	if _, ours := o.(Object); !ours {
		return Kind{}, false
	}
	return KindOf(reflect.TypeOf(o).Elem().Name())
}

// Is says whether a user's word means the kind: its name in any case, its
// plural, with the group or without, or a short name.
func (k Kind) Is(word string) bool {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	return word == strings.ToLower(k.Name) || word == k.Plural || slices.Contains(k.Short, word)
}

// Names are what an object refers to of a kind, those that keep it from being
// deleted only.
func (k Kind) Names(o Object, of string) (names []string) {
	for _, r := range k.References {
		if name := r.Name(o); r.Kind == of && r.Keeps && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// KeptBy are the kinds whose objects keep one of this kind, or a Secret, from
// being deleted.
func KeptBy(kind string) (names []string) {
	for _, k := range kinds {
		if slices.ContainsFunc(k.References, func(r Reference) bool { return r.Kind == kind && r.Keeps }) {
			names = append(names, k.Name)
		}
	}
	return names
}
