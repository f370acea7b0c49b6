package webhooks

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
)

// The paths are those of Kubebuilder, which webhook configurations go by.
func TestPaths(t *testing.T) {
	want := []string{}
	for _, kind := range []string{"account", "providertype", "provider", "networkpeer", "import", "network", "cluster", "backup", "restore", "ticdc"} {
		want = append(want, "/mutate-cloud-pingcap-com-v1-"+kind, "/validate-cloud-pingcap-com-v1-"+kind)
	}
	got := []string{}
	for path := range Handlers(NewCaches(&liveReader{}), testOptions) {
		got = append(got, path)
	}
	require.ElementsMatch(t, want, got)
}

// recorder notes which kinds are looked up in the caches.
type recorder struct {
	mu    sync.Mutex
	names []string
}

func (r *recorder) note(how, kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name := how + " " + kind; !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.names
	r.names = nil
	slices.Sort(out)
	return out
}

// recordingIndexer tells a recorder of every look-up.
type recordingIndexer struct {
	cache.Indexer
	kind string
	to   *recorder
}

func (i *recordingIndexer) GetByKey(key string) (any, bool, error) {
	i.to.note("GET", i.kind)
	return i.Indexer.GetByKey(key)
}

func (i *recordingIndexer) ByIndex(name, value string) ([]any, error) {
	if name != byIdentityID {
		i.to.note("LIST", i.kind)
	}
	return i.Indexer.ByIndex(name, value)
}

func (i *recordingIndexer) List() []any {
	i.to.note("LIST", i.kind)
	return i.Indexer.List()
}

func (w *world) record() *recorder {
	r := &recorder{}
	for _, p := range w.caches.parts {
		p.use(&recordingIndexer{Indexer: p.indexer(), kind: p.kind, to: r})
	}
	return r
}

// What a kind looks up. In brackets after each: what for. All of it is in memory.
func TestLookUps(t *testing.T) {
	cases, err := loadCases()
	require.NoError(t, err)
	want := map[string]struct{ mutate, create, update []string }{
		v1.KindAccount:      {},
		v1.KindProviderType: {},
		v1.KindProvider: {
			create: []string{"GET Account", "GET ProviderType"}, // ProviderType; Account exists and is not suspended
			update: []string{"GET ProviderType"},
		},
		v1.KindNetwork: {
			mutate: []string{"GET Account", "GET Provider", "GET ProviderType"}, // Provider; zones of the ProviderType
			// Provider, Networks of the project; regions and ranges of the
			// ProviderType; what the Account has
			create: []string{"GET Account", "GET Provider", "GET ProviderType", "LIST Network", "LIST Provider"},
			update: []string{"GET Account", "GET Provider", "GET ProviderType"},
		},
		v1.KindCluster: {
			mutate: []string{"GET Network"}, // Network
			// Network, Provider; classes of the ProviderType; what the Account has
			create: []string{"GET Account", "GET Network", "GET Provider", "GET ProviderType", "LIST Provider"},
			update: []string{"GET Account", "GET Network", "GET Provider", "GET ProviderType"},
		},
		v1.KindNetworkPeer: {
			mutate: []string{"GET Network"}, // Network
			// Networks; clouds of the ProviderTypes; quota of the Account and
			// ranges of the other peers
			create: []string{"GET Account", "GET Network", "GET Provider", "GET ProviderType", "LIST NetworkPeer"},
		},
		v1.KindBackup: {
			mutate: []string{"GET Cluster"}, // Cluster
			// Cluster; region of its Network, Account; what runs on the Cluster
			create: []string{"GET Account", "GET Cluster", "GET Network", "GET Provider", "GET ProviderType", "LIST Backup", "LIST Import", "LIST Restore", "LIST TiCDC"},
		},
		v1.KindRestore: {
			mutate: []string{"GET Cluster"}, // Cluster
			// Cluster, Backup; region and cloud; what runs on the Cluster
			create: []string{"GET Account", "GET Backup", "GET Cluster", "GET Network", "GET Provider", "GET ProviderType", "LIST Backup", "LIST Import", "LIST Restore", "LIST TiCDC"},
		},
		v1.KindImport: {
			mutate: []string{"GET Cluster"}, // Cluster
			// Cluster, Network; cloud of the ProviderType; what runs on the Cluster
			create: []string{"GET Account", "GET Cluster", "GET Network", "GET Provider", "GET ProviderType", "LIST Backup", "LIST Import", "LIST Restore", "LIST TiCDC"},
		},
		v1.KindTiCDC: {
			mutate: []string{"GET Network"}, // Network
			// nothing; the exclusion matrix and the peers, none of them called missing
			create: []string{"GET Account", "GET Cluster", "GET Network", "GET Provider", "GET ProviderType", "LIST Import", "LIST NetworkPeer", "LIST Restore", "LIST TiCDC"},
		},
	}
	for _, k := range cases.kinds {
		t.Run(k.Kind, func(t *testing.T) {
			w := newWorld(t, cases.world.Objects...)
			r := w.record()
			o := object(t, &k, nil)
			expected := want[k.Kind]
			require.Contains(t, want, k.Kind)

			mutated := w.handlers[MutatePath(k.Kind)].Handle(t.Context(), request(t, admissionv1.Create, nil, o))
			require.True(t, mutated.Allowed)
			require.Equal(t, expected.mutate, r.take(), "mutate")
			w.handlers[ValidatePath(k.Kind)].Handle(t.Context(), request(t, admissionv1.Create, nil, o))
			require.Equal(t, expected.create, r.take(), "create")

			// An update of annotations, such as a verb or the bridge's own patch,
			// looks nothing up.
			_, labelled := w.ask(admissionv1.Create, nil, o)
			r.take()
			annotated, err := admissioncases.Change(labelled, admissioncases.Changes{"metadata.annotations": map[string]any{v1.AnnotationOperation: "retry"}})
			require.NoError(t, err)
			answer, _ := w.ask(admissionv1.Update, labelled, annotated)
			require.True(t, answer.Allowed, "%v", answer.Result)
			require.Empty(t, r.take(), "an update that concerns no rule")

			changed, err := admissioncases.Change(labelled, admissioncases.Changes{"spec.deletionPolicy": "Retain"})
			require.NoError(t, err)
			w.ask(admissionv1.Update, labelled, changed)
			require.Equal(t, expected.update, r.take(), "update")
			require.Subset(t, []string{"Cluster"}, w.live.reads, "nothing is read past the caches but a Cluster that does not exist")
		})
	}
}

// Of migrated objects, which are records, most is skipped.
func TestMigratedLookUps(t *testing.T) {
	cases, err := loadCases()
	require.NoError(t, err)
	for kind, want := range map[string]struct{ mutate, create []string }{
		v1.KindImport:  {},
		v1.KindBackup:  {mutate: []string{"GET Cluster"}},
		v1.KindRestore: {mutate: []string{"GET Cluster"}, create: []string{"GET Backup"}},
	} {
		for _, k := range cases.kinds {
			if k.Kind != kind {
				continue
			}
			w := newWorld(t, cases.world.Objects...)
			r := w.record()
			o := object(t, &k, admissioncases.Changes{"metadata.annotations": map[string]any{v1.AnnotationMigrated: "true"}})
			w.handlers[MutatePath(kind)].Handle(t.Context(), request(t, admissionv1.Create, nil, o))
			require.Equal(t, want.mutate, r.take(), kind)
			w.handlers[ValidatePath(kind)].Handle(t.Context(), request(t, admissionv1.Create, nil, o))
			require.Equal(t, want.create, r.take(), kind)
		}
	}
}

// A reference that the cache does not have yet is read live before it is called
// missing, once.
func TestAReferenceThatIsNew(t *testing.T) {
	cases, err := loadCases()
	require.NoError(t, err)
	w := newWorld(t, given(t, cases.world, map[string]*admissioncases.Changes{"Network/n2": nil})...)
	w.live.objects["Network/n9"] = &v1.Network{}
	for _, k := range cases.kinds {
		if k.Kind != v1.KindCluster {
			continue
		}
		r := w.handlers[ValidatePath(v1.KindCluster)].Handle(t.Context(), request(t, admissionv1.Create, nil, object(t, &k, admissioncases.Changes{"spec.network": "n2"})))
		require.Contains(t, refusals(t, r)[0].Message, "there is no such Network")
		require.Equal(t, []string{"Network"}, w.live.reads)

		n2 := newWorld(t, cases.world.Objects...)
		n2.live.reads = nil
		item, _ := n2.caches.networks.cached("infra", "n2")
		w.live.objects["Network/n2"] = item
		r = w.handlers[ValidatePath(v1.KindCluster)].Handle(t.Context(), request(t, admissionv1.Create, nil, object(t, &k, admissioncases.Changes{"spec.network": "n2"})))
		require.True(t, r.Allowed, "%v", r.Result)

		w.live.err = errors.New("connection refused")
		r = w.handlers[ValidatePath(v1.KindCluster)].Handle(t.Context(), request(t, admissionv1.Create, nil, object(t, &k, admissioncases.Changes{"spec.network": "n3x"})))
		require.False(t, r.Allowed)
		require.EqualValues(t, http.StatusServiceUnavailable, r.Result.Code)
		require.Contains(t, r.Result.Message, "cannot be looked up at the moment, try again")
	}
}
