package management

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Names of the cache's indexes. With them a look does not cost more the more
// objects there are.
const (
	// indexReference holds what an object refers to, kind/name; see refersTo.
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
	return map[string]client.IndexerFunc{
		indexReference: func(o client.Object) (keys []string) {
			for _, of := range References(o) {
				if key := of.Kind + "/" + of.Name; !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
			return keys
		},
		indexIdentity: func(o client.Object) []string {
			if id := o.GetAnnotations()[v1.AnnotationID]; id != "" {
				return []string{id}
			}
			return nil
		},
	}
}
