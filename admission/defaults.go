package admission

import (
	"fmt"
	"slices"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// Field is a field of spec and its value.
type Field struct {
	Name  string
	Value any
}

// Defaults are what is filled in before an object is written. Applying them
// twice changes nothing more.
type Defaults struct {
	// Labels that are not there yet. A label with another value is left, for the
	// validation to refuse.
	Labels map[string]string
	// Annotations that an update has dropped.
	Annotations map[string]string
	// Finalizer that is not there yet; "" for none.
	Finalizer string
	// Spec are fields of spec to set.
	Spec []Field
	// Warnings are shown to whoever asked.
	Warnings []string
}

// ForAll are the defaults that all kinds have. old is nil for a new object.
// finalizer is that of the kind; "" for a kind that has none.
func ForAll(old, o v1.Object, finalizer string) Defaults {
	var d Defaults
	if o.GetDeletionTimestamp() == nil && finalizer != "" && !slices.Contains(o.GetFinalizers(), finalizer) {
		d.Finalizer = finalizer
	}
	if old == nil {
		if Migrated(o) && o.GetDeletionPolicy() != v1.DeletionPolicyRetain {
			// The schema has filled in Delete before anybody can see whether it was
			// meant. What others have made is not deleted on a guess.
			d.Spec = append(d.Spec, Field{"deletionPolicy", string(v1.DeletionPolicyRetain)})
			d.Warnings = append(d.Warnings,
				"spec.deletionPolicy is Retain, as the object is marked as migrated; set it to Delete afterwards if its external resources shall go with it")
		}
		return d
	}
	// A manifest of the creation, put over what lives, lacks the identity, too:
	// nobody means anything by that.
	if d.Finalizer != "" && slices.Contains(old.GetFinalizers(), finalizer) && o.GetAnnotations()[v1.AnnotationID] == old.GetAnnotations()[v1.AnnotationID] {
		d.Warnings = append(d.Warnings, finalizerStripped(o, finalizer))
	}
	d.Annotations = dropped(old.GetAnnotations(), o.GetAnnotations(), v1.AnnotationID, v1.AnnotationIDMintedFor)
	if d.Annotations[v1.AnnotationID] == "" {
		d.Annotations = nil // it goes with its identity only
	}
	d.Labels = dropped(old.GetLabels(), o.GetLabels(), v1.LabelProviderType, v1.LabelProvider, v1.LabelNetwork, v1.LabelCluster)
	return d
}

// finalizerStripped is told to whoever takes our finalizer from an object that
// lives, as tools that move objects do: to take it away, or the object, does not
// mean to those what it means to us.
func finalizerStripped(o v1.Object, finalizer string) string {
	said := fmt.Sprintf("metadata.finalizers: %q was put back, as the object is not being deleted; ", finalizer)
	switch {
	case o.GetDeletionPolicy() == v1.DeletionPolicyRetain:
		return said + "delete it, and with deletionPolicy Retain everything that it has outside is kept"
	case o.GetAnnotations()[v1.AnnotationPaused] == "true":
		return said + "a deletion waits while it is paused, and then removes everything that it has outside: " +
			"to move it, set spec.deletionPolicy: Retain before it is deleted and resumed"
	}
	return said + "its deletion removes everything that it has outside. To move it, set spec.deletionPolicy: Retain first; " +
		"while a tool is at work, the annotation " + v1.AnnotationPaused + "=true keeps a deletion waiting"
}

// dropped are those of the keys that were there and are not any more, such as
// after a kubectl replace with a manifest that never had them.
func dropped(before, now map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if was := before[key]; was != "" && now[key] == "" {
			out[key] = was
		}
	}
	return out
}

// label adds a label unless there is one, or nothing to put into it.
func (d *Defaults) label(o v1.Object, key, value string) {
	if value == "" || o.GetLabels()[key] != "" || d.Labels[key] != "" {
		return
	}
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	d.Labels[key] = value
}

// inherit copies labels of the object that o refers to.
func (d *Defaults) inherit(o, from v1.Object, keys ...string) {
	for _, key := range keys {
		d.label(o, key, from.GetLabels()[key])
	}
}

// LabelsMissing reports whether an object lacks one of the labels, so that
// somebody must look up what they are.
func LabelsMissing(old, o v1.Object, keys ...string) bool {
	for _, key := range keys {
		if o.GetLabels()[key] == "" && (old == nil || old.GetLabels()[key] == "") {
			return true
		}
	}
	return false
}

// ProviderType fills in the label of its own name.
func (d *Defaults) ProviderType(pt *v1.ProviderType) {
	d.label(pt, v1.LabelProviderType, pt.Name)
}

// Provider fills in its label, and the project of a new Provider: it stays the
// same when the configuration changes.
func (d *Defaults) Provider(old, p *v1.Provider, o plan.Options) {
	d.label(p, v1.LabelProviderType, string(p.Spec.Type))
	if old == nil && p.Spec.Project == "" && o.DefaultProject != "" {
		d.Spec = append(d.Spec, Field{"project", o.DefaultProject})
	}
	if old != nil {
		d.restore("project", old.Spec.Project, p.Spec.Project)
	}
}

// Network fills in what derives from its Provider. provider and pt may be nil:
// then what derives from them is left out.
func (d *Defaults) Network(old, n *v1.Network, provider *v1.Provider, pt *v1.ProviderType) {
	d.label(n, v1.LabelProvider, string(n.Spec.Provider))
	if provider != nil {
		d.label(n, v1.LabelProviderType, string(provider.Spec.Type))
	}
	if old != nil {
		d.restore("account", string(old.Spec.Account), string(n.Spec.Account))
		d.restore("shootName", old.Spec.ShootName, n.Spec.ShootName)
		d.restore("tenantProject", old.Spec.TenantProject, n.Spec.TenantProject)
		if len(n.Spec.Zones) == 0 && len(old.Spec.Zones) > 0 {
			d.Spec = append(d.Spec, Field{"zones", plainZones(old.Spec.Zones)})
		}
		return
	}
	if n.Spec.ShootName == "" && n.Name != "" {
		d.Spec = append(d.Spec, Field{"shootName", plan.ShootName(n)})
	}
	if provider != nil && n.Spec.Account == "" && provider.Spec.Account != "" {
		d.Spec = append(d.Spec, Field{"account", string(provider.Spec.Account)})
	}
	if zones := plan.RegionZones(pt, n.Spec.Region); len(n.Spec.Zones) == 0 && len(zones) > 0 {
		d.Spec = append(d.Spec, Field{"zones", plainZones(zones)})
	}
}

// restore puts back an immutable field that an update has dropped. One that was
// never given stays so: its default is in use already.
func (d *Defaults) restore(name, was, now string) {
	if now == "" && was != "" {
		d.Spec = append(d.Spec, Field{name, was})
	}
}

// InNetwork fills in the labels of an object in a Network; n may be nil.
func (d *Defaults) InNetwork(o v1.Object, name string, n *v1.Network) {
	d.label(o, v1.LabelNetwork, name)
	if n != nil {
		d.label(o, v1.LabelProvider, string(n.Spec.Provider))
		d.inherit(o, n, v1.LabelProviderType)
	}
}

// OfCluster fills in the labels of an object that refers to a Cluster; c may be
// nil.
func (d *Defaults) OfCluster(o v1.Object, name string, c *v1.Cluster) {
	d.label(o, v1.LabelCluster, name)
	if c != nil {
		d.label(o, v1.LabelNetwork, string(c.Spec.Network))
		d.inherit(o, c, v1.LabelProvider, v1.LabelProviderType)
	}
}

func plainZones(zones []v1.ZoneName) []any {
	out := make([]any, 0, len(zones))
	for _, z := range zones {
		out = append(out, string(z))
	}
	return out
}
