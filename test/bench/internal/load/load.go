// Package load is who applies the objects: it prepares an API server, and
// makes Networks and Clusters as users do.
package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Namespace of everything that is applied.
const Namespace = "infra"

// appliers is how many objects are applied at a time.
const appliers = 8

// Load applies objects and remembers when.
type Load struct {
	Client client.Client

	samples samples

	mu      sync.Mutex
	applied map[string]time.Time
}

// Connect returns a Load without a rate limit of its own. root is the checkout.
func Connect(kubeconfig, root string) (*Load, error) {
	s, err := readSamples(filepath.Join(root, "deploy", "samples", "aws"))
	if err != nil {
		return nil, err
	}
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), apiextensions.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(rc, client.Options{Scheme: scheme})
	return &Load{Client: c, samples: s, applied: map[string]time.Time{}}, err
}

// Prepare installs the custom resource definitions and the objects that all
// Networks share.
func (l *Load) Prepare(ctx context.Context, crds string) error {
	if err := l.install(ctx, crds); err != nil {
		return fmt.Errorf("custom resource definitions: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.samples.network.GetNamespace()}}
	if err := l.create(ctx, namespace); err != nil {
		return err
	}
	for _, o := range l.samples.shared {
		if err := l.create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (l *Load) install(ctx context.Context, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("%d files in %s", len(files), folder))
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		crd := &apiextensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		if err := l.Client.Create(ctx, crd); err != nil {
			return err
		}
		if err := l.established(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

func (l *Load) established(ctx context.Context, crd *apiextensions.CustomResourceDefinition) error {
	for {
		if err := l.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensions.Established && c.Status == apiextensions.ConditionTrue {
				return nil
			}
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// create creates an object. For a few seconds after its definition a kind may
// not be served yet.
func (l *Load) create(ctx context.Context, o client.Object) error {
	for attempt := 0; ; attempt++ {
		err := l.Client.Create(ctx, o)
		if !apierrors.IsNotFound(err) || attempt == 100 {
			return err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Apply makes the Networks and Clusters numbered from first to first+n-1.
func (l *Load) Apply(ctx context.Context, first, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(appliers)
	for i := first; i < first+n; i++ {
		g.Go(func() error {
			for _, o := range l.samples.pair(i) {
				if err := l.apply(ctx, o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// ApplyNetwork makes the one Network of a crowd, ApplyCrowd n Clusters in it.
func (l *Load) ApplyNetwork(ctx context.Context) error { return l.apply(ctx, l.samples.one()) }

// ApplyCrowd makes n Clusters in the Network of ApplyNetwork.
func (l *Load) ApplyCrowd(ctx context.Context, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(appliers)
	for i := range n {
		g.Go(func() error { return l.apply(ctx, l.samples.member(i)) })
	}
	return g.Wait()
}

// apply creates an object and remembers when.
func (l *Load) apply(ctx context.Context, o client.Object) error {
	id := temporal.ObjectID(o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
	l.mu.Lock()
	l.applied[id] = time.Now()
	l.mu.Unlock()
	if err := l.create(ctx, o); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// Delete deletes the Networks and Clusters numbered from first to first+n-1.
func (l *Load) Delete(ctx context.Context, first, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(appliers)
	for i := first; i < first+n; i++ {
		g.Go(func() error {
			for _, o := range l.samples.pair(i) {
				if err := l.Client.Delete(ctx, o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// Left counts the Networks and Clusters that exist.
func (l *Load) Left(ctx context.Context) (int, error) {
	left := 0
	for _, kind := range []string{v1.KindNetwork, v1.KindCluster} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1.GroupVersion.WithKind(kind + "List"))
		if err := l.Client.List(ctx, list, client.InNamespace(Namespace)); err != nil {
			return 0, err
		}
		left += len(list.Items)
	}
	return left, nil
}

// AppliedAt is when the object was applied: "network/<namespace>/<name>".
func (l *Load) AppliedAt(id string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.applied[id]
	return at, ok
}
