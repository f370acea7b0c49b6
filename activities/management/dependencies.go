package management

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/reads"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	"github.com/tidbcloud/infra-orchestrator/admission"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// dependencyPoll is the fallback for lost events; the look is at the cache.
const dependencyPoll = time.Minute

// WaitDependencies waits until something changed that the object needs. What
// it compares are versions, never contents: nothing secret is held or told. An
// event costs those who need its object, and reads nothing if it is none of
// what they look at.
func (a *Activities) WaitDependencies(ctx context.Context, in contract.DependenciesInput) (contract.Change, error) {
	first, err := a.needs(ctx, a.Client, in.Ref)
	if err == nil && changedSince(first, in.Used, in.Since.Time) != "" {
		// The attempt may have used what the cache does not have yet.
		first, err = a.needs(ctx, a.Live, in.Ref)
	}
	if err != nil {
		return contract.Change{}, err
	}
	woken := make(chan struct{}, 1)
	known, keys := map[wake.Key]dependency{}, []wake.Key{}
	for _, d := range first {
		known[d.key], keys = d, append(keys, d.key)
	}
	defer a.Wake.On(func(o client.Object, gone bool) {
		if d := known[wake.KeyOf(o)]; !gone && d.of != nil && d.of(o) == d.version {
			return
		}
		select {
		case woken <- struct{}{}:
		default:
		}
	}, keys...)()
	var change contract.Change
	// Whoever mends the cause may be quicker than this wait's beginning.
	if change.What = changedSince(first, in.Used, in.Since.Time); change.What != "" {
		return change, nil
	}
	err = wait.Silently(ctx, dependencyPoll, woken, func(ctx context.Context) (bool, error) {
		now, err := a.needs(ctx, a.Client, in.Ref)
		if err == nil && difference(first, now) != "" {
			now, err = a.needs(ctx, a.Live, in.Ref)
		}
		if err != nil {
			return false, err
		}
		change.What = difference(first, now)
		return change.What != "", nil
	})
	return change, err
}

// needs is all that an object needs: others, and sound annotations of its own.
func (a *Activities) needs(ctx context.Context, from client.Reader, ref contract.ObjectRef) ([]dependency, error) {
	all, err := a.dependencies(ctx, from, ref)
	if err != nil {
		return nil, err
	}
	own, err := a.annotationRules(ctx, from, ref)
	return append(all, own...), err
}

// dependency is a version of something that an object needs.
type dependency struct {
	key     wake.Key
	used    string                     // its name in contract.DependenciesInput
	of      func(client.Object) string // the version of an object that has the key
	name    string                     // for people: provider infra/core-aws
	version string                     // changes when it does
	at      time.Time                  // when it last did, in whole seconds
}

// dependencies lists what an object needs, in the order of the references.
// What does not exist has an empty version.
func (a *Activities) dependencies(ctx context.Context, from client.Reader, ref contract.ObjectRef) (all []dependency, err error) {
	look := func(name v1.ReferenceName, into client.Object) {
		if name == "" || err != nil {
			return
		}
		_, e := get(ctx, from, ref.Namespace, string(name), into)
		if e != nil && !faults.Is(e, faults.Gone) {
			err = e
			return
		}
		d := dependency{name: describe(into, ref.Namespace, string(name)), of: versionOf,
			key: wake.Key{Kind: wake.KindOf(into), Namespace: ref.Namespace, Name: string(name)}}
		d.used = d.key.Kind + "/" + d.key.Name
		if e == nil {
			d.version, d.at = versionOf(into), writtenAt(into)
		}
		all = append(all, d)
	}
	var cluster v1.Cluster
	var network v1.Network
	var provider v1.Provider
	var kind v1.ProviderType
	var account v1.Account
	var secret, password corev1.Secret
	switch ref.Kind {
	case v1.KindCluster:
		if _, err = get(ctx, from, ref.Namespace, ref.Name, &cluster); err == nil {
			look(cluster.Spec.Network, &network)
			if s := cluster.Spec.RootPasswordSecretRef; s != nil {
				look(v1.ReferenceName(s.Name), &password)
			}
		}
	case v1.KindNetwork:
		_, err = get(ctx, from, ref.Namespace, ref.Name, &network)
	case v1.KindProvider:
		_, err = get(ctx, from, ref.Namespace, ref.Name, &provider)
	}
	if err != nil {
		return nil, faults.IgnoreGone(err)
	}
	look(network.Spec.Provider, &provider)
	look(provider.Spec.Type, &kind)
	look(provider.Spec.Account, &account)
	if s := provider.Spec.Credentials.SecretRef; s != nil {
		look(v1.ReferenceName(s.Name), &secret)
	}
	return all, err
}

// versionOf is the version of what others need of an object: its status does
// not count, but whether a Network is Ready.
func versionOf(o client.Object) string {
	switch o := o.(type) {
	case *corev1.Secret:
		return string(o.UID) + "/" + o.ResourceVersion
	case *v1.Network:
		return fmt.Sprint(o.UID, "/", o.Generation, "/", ready(o))
	}
	return fmt.Sprint(o.GetUID(), "/", o.GetGeneration())
}

// annotationRules are what is wrong with the object's own annotations, as a
// dependency: an operation that they refused goes on when they are corrected,
// which gives the object no new generation.
func (a *Activities) annotationRules(ctx context.Context, from client.Reader, ref contract.ObjectRef) ([]dependency, error) {
	o, err := newObject(ref.Kind)
	if err != nil {
		return nil, err
	}
	if _, err := get(ctx, from, ref.Namespace, ref.Name, o); err != nil {
		return nil, faults.IgnoreGone(err)
	}
	key := wake.KeyOf(o)
	return []dependency{{name: "what is wrong with its annotations", key: key, used: key.Kind + "/" + key.Name + annotations, of: problemsOf, version: problemsOf(o)}}, nil
}

// writtenAt is when somebody last wrote the object, its status aside; of a
// Network also when it last became Ready, or ceased to be.
func writtenAt(o client.Object) (at time.Time) {
	for _, m := range o.GetManagedFields() {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	if n, ok := o.(*v1.Network); ok {
		if c := meta.FindStatusCondition(n.Status.Conditions, v1.ConditionReady); c != nil && c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}

// note notes an object's version, and that of its annotations, for the stall
// that the attempt may end with.
func note(ctx context.Context, o client.Object, name string, exists bool) {
	kind := wake.KindOf(o)
	if !exists {
		reads.Used(ctx, kind+"/"+name, "")
		return
	}
	reads.Used(ctx, kind+"/"+name, versionOf(o))
	if _, ours := o.(v1.Object); ours {
		reads.Used(ctx, kind+"/"+name+annotations, problemsOf(o))
	}
}

// annotations marks the version of an object's annotations.
const annotations = " annotations"

// problemsOf is the version of what is wrong with an object's annotations.
func problemsOf(o client.Object) string {
	own, ours := o.(v1.Object)
	if !ours {
		return ""
	}
	sum := sha256.Sum256(fmt.Append(nil, admission.UserAnnotations(own)))
	return "problems/" + hex.EncodeToString(sum[:8])
}

// newer says whether an object has changed since it was used. A cache that is
// behind the one that the attempt used knows of no change.
func newer(used, now string) bool {
	was, is := strings.Split(used, "/"), strings.Split(now, "/")
	if len(was) > 1 && len(is) > 1 && was[0] == is[0] {
		x, xerr := strconv.ParseUint(was[1], 10, 64)
		y, yerr := strconv.ParseUint(is[1], 10, 64)
		if xerr == nil && yerr == nil && y < x {
			return false
		}
	}
	return used != now
}

// changedSince names the first dependency that is not as the attempt has used
// it, or of which that is not known and that was written at or after the time. The API server keeps seconds, so a write in the same second counts: a
// try too many does no harm.
func changedSince(now []dependency, used map[string]string, since time.Time) string {
	for _, d := range now {
		if version, known := used[d.used]; known {
			if newer(version, d.version) {
				return d.name + " has changed"
			}
			continue
		}
		if !since.IsZero() && !d.at.Before(since.Truncate(time.Second)) {
			return d.name + " has changed"
		}
	}
	return ""
}

// difference names the first dependency that changed; empty when none has.
func difference(before, now []dependency) string {
	for _, d := range now {
		at := slices.IndexFunc(before, func(b dependency) bool { return b.name == d.name })
		switch {
		case at < 0:
			return "it refers to " + d.name + " now"
		case before[at].version == d.version:
		case before[at].version == "":
			return d.name + " exists now"
		case d.version == "":
			return d.name + " is gone"
		default:
			return d.name + " has changed"
		}
	}
	return ""
}
