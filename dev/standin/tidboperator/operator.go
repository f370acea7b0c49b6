package tidboperator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// Options of the stand-in.
type Options struct {
	// Faults says which components are stuck; nil means none.
	Faults *control.Registry
	// Speed divides all times; 1 starts a cluster in about 5 s.
	Speed float64
	Log   *slog.Logger
}

const (
	// look is the time between two looks at a shoot; it is not scaled, since
	// it costs the machine.
	look = 400 * time.Millisecond
	// startTime is how long a component takes from its Pods to being healthy.
	startTime = time.Second
	// initTime is how long a TidbInitializer's Job runs.
	initTime = time.Second

	operatorNamespace  = "tidb-admin"
	operatorDeployment = "tidb-controller-manager"
)

// Addon returns the stand-in as what runs inside each shoot.
func Addon(o Options) gardenlet.ShootAddon {
	if o.Speed <= 0 {
		o.Speed = 1
	}
	return func(ctx context.Context, shoot gardenlet.ShootInfo) error {
		scheme := runtime.NewScheme()
		if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
			return err
		}
		// A static mapper knows the kinds before their CRDs are there.
		c, err := client.New(shoot.Config, client.Options{Scheme: scheme, Mapper: mapper(scheme)})
		if err != nil {
			return err
		}
		op := &operator{Options: o, client: c, shoot: shoot, since: map[string]time.Time{}}
		return op.run(ctx)
	}
}

// mapper maps the kinds that the operator works on without asking the server.
func mapper(scheme *runtime.Scheme) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for gvk := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if gvk.Kind == "PersistentVolume" || gvk.Kind == "Namespace" || gvk.Kind == "Node" {
			scope = meta.RESTScopeRoot
		}
		m.Add(gvk, scope)
	}
	for _, kind := range []string{"TidbCluster", "TidbInitializer", "BackupSchedule", "Backup"} {
		m.Add(pingcap(kind), meta.RESTScopeNamespace)
	}
	return m
}

func pingcap(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "pingcap.com", Version: "v1alpha1", Kind: kind}
}

// operator works in one shoot.
type operator struct {
	Options
	client client.Client
	shoot  gardenlet.ShootInfo
	// since remembers when something began, by a key of its own.
	since map[string]time.Time
}

func (o *operator) run(ctx context.Context) error {
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := o.sync(ctx); err != nil && ctx.Err() == nil && o.Log != nil {
			o.Log.Debug("tidb-operator: look failed, the next one follows", "shoot", o.shoot.TechnicalID, "error", err)
		}
	}
}

// sync looks at everything once.
func (o *operator) sync(ctx context.Context) error {
	running, err := o.installed(ctx)
	if err != nil || !running {
		return err
	}
	return errors.Join(
		o.each(ctx, "TidbCluster", o.syncCluster),
		o.each(ctx, "TidbInitializer", o.syncInitializer),
		o.each(ctx, "Backup", o.syncBackup),
	)
}

// installed says whether the operator's own Deployment is available.
func (o *operator) installed(ctx context.Context) (bool, error) {
	var d appsv1.Deployment
	err := o.client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorDeployment}, &d)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return d.Status.AvailableReplicas > 0, nil
}

// each calls sync for every object of a kind. A CRD that is not there is none.
func (o *operator) each(ctx context.Context, kind string, sync func(context.Context, *unstructured.Unstructured) error) error {
	list := &unstructured.UnstructuredList{}
	gvk := pingcap(kind)
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := o.client.List(ctx, list); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		return err
	}
	var errs []error
	for i := range list.Items {
		errs = append(errs, sync(ctx, &list.Items[i]))
	}
	return errors.Join(errs...)
}

// elapsed says whether the scaled time has passed since the key was first seen.
func (o *operator) elapsed(key string, d time.Duration) bool {
	began, ok := o.since[key]
	if !ok {
		o.since[key] = time.Now()
		return false
	}
	return time.Since(began) >= time.Duration(float64(d)/o.Speed)
}

func (o *operator) stuck(u *unstructured.Unstructured, component string) bool {
	return o.Faults != nil && o.Faults.Stuck(control.TargetTiDB, control.Subject{
		Shoot: o.shoot.TechnicalID, ShootName: o.shoot.Name, Namespace: u.GetNamespace(), Name: u.GetName(), Component: component,
	})
}
