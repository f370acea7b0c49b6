package management

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Names of the cache's indexes. With them a look does not cost more the more
// objects there are.
const (
	// indexReference holds what an object refers to; see refersTo.
	indexReference = "reference"
	// indexIdentity holds an object's identity.
	indexIdentity = "identity"
)

// Index gives a cache the indexes that Activities.Client must have. Call it
// before the cache starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range Kinds() {
		for name, of := range indexes() {
			if err := indexer.IndexField(ctx, kind, name, of); err != nil {
				return fmt.Errorf("index %s of %T: %w", name, kind, err)
			}
		}
	}
	return nil
}

func indexes() map[string]client.IndexerFunc {
	one := func(of func(client.Object) string) client.IndexerFunc {
		return func(o client.Object) []string {
			if value := of(o); value != "" {
				return []string{value}
			}
			return nil
		}
	}
	return map[string]client.IndexerFunc{
		indexReference: one(func(o client.Object) string { return refersTo(o) }),
		indexIdentity:  one(func(o client.Object) string { return o.GetAnnotations()[v1.AnnotationID] }),
	}
}
