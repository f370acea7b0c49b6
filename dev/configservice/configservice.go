// Package configservice stands in for the config-service: an HTTP service that
// tells which configuration a Network or a Cluster gets, and serves documents by
// the SHA-256 of their bytes.
//
//	GET /v1/network-config?cloud=&region=&tenant=                    -> {"hash": "..."}
//	GET /v1/cluster-config?cloud=&region=&tenant=&operator=&version= -> {"hash": "..."}
//	GET /v1/configs/<hash>                                           -> the YAML document
//
// The documents are the *.yaml files of a folder, read anew when the folder
// changes. A document says by its fields kind, cloud, region, tenant, operator
// and version what it fits; a field that it leaves out fits all. The one that
// fits most closely wins: more fields first, then the later file name.
package configservice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
)

// Service is the HTTP handler. Documents that were served once stay available
// by their hash although the folder has changed, as operations pin them.
type Service struct {
	dir    string
	faults *control.Registry
	mux    *http.ServeMux

	mu      sync.Mutex
	byHash  map[string][]byte
	current []document
	state   string // names, sizes and times of the files that were read
}

// document is one file, as far as picking goes.
type document struct {
	Kind     string `json:"kind"`
	Cloud    string `json:"cloud"`
	Region   string `json:"region"`
	Tenant   string `json:"tenant"`
	Operator string `json:"operator"`
	Version  string `json:"version"`

	hash, file string
}

// New reads the folder; a file that does not parse is an error. faults may be
// nil.
func New(dir string, faults *control.Registry) (*Service, error) {
	s := &Service{dir: dir, faults: faults, mux: http.NewServeMux(), byHash: map[string][]byte{}}
	if err := s.refresh(); err != nil {
		return nil, err
	}
	s.mux.HandleFunc("GET /v1/network-config", s.pick("NetworkConfig"))
	s.mux.HandleFunc("GET /v1/cluster-config", s.pick("ClusterConfig"))
	s.mux.HandleFunc("GET /v1/configs/{hash}", s.document)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	return s, nil
}

// ServeHTTP applies faults, then answers.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.faults != nil {
		fault, ok := s.faults.Strike(control.TargetConfigService, control.Subject{Resource: r.URL.RequestURI()})
		switch {
		case !ok:
		case fault.Kind == control.KindDelay:
			select {
			case <-r.Context().Done():
			case <-time.After(time.Duration(fault.Delay)):
			}
		case fault.Kind == control.KindLostAnswer:
			panic(http.ErrAbortHandler) // net/http cuts the connection
		default:
			status := fault.Status
			if status == 0 {
				status = http.StatusInternalServerError
			}
			fail(w, status, "the config-service has a problem (fault "+fault.ID+" of the devstack)")
			return
		}
	}
	s.mux.ServeHTTP(w, r)
}

// pick answers the hash of the document of a kind that fits the query best.
func (s *Service) pick(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.refreshLocked(); err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
		q := r.URL.Query()
		want := document{
			Kind: kind, Cloud: q.Get("cloud"), Region: q.Get("region"), Tenant: q.Get("tenant"),
			Operator: q.Get("operator"), Version: q.Get("version"),
		}
		best, score := document{}, -1
		for _, d := range s.current {
			if n := d.fits(want); n >= score && n >= 0 {
				best, score = d, n
			}
		}
		if score < 0 {
			fail(w, http.StatusNotFound, fmt.Sprintf("no %s fits cloud %q, region %q, tenant %q, operator %q, version %q",
				kind, want.Cloud, want.Region, want.Tenant, want.Operator, want.Version))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"hash": best.hash})
	}
}

// fits counts the fields of d that want matches, or returns -1 when one does
// not match.
func (d document) fits(want document) int {
	if d.Kind != want.Kind {
		return -1
	}
	score := 0
	for _, f := range [][2]string{
		{d.Cloud, want.Cloud}, {d.Region, want.Region}, {d.Tenant, want.Tenant},
		{d.Operator, want.Operator}, {d.Version, want.Version},
	} {
		switch {
		case f[0] == "":
		case strings.EqualFold(f[0], f[1]):
			score++
		default:
			return -1
		}
	}
	return score
}

func (s *Service) document(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	s.mu.Lock()
	body, ok := s.byHash[hash]
	s.mu.Unlock()
	if !ok {
		fail(w, http.StatusNotFound, "there is no configuration "+hash)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "immutable")
	_, _ = w.Write(body)
}

func (s *Service) refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refreshLocked()
}

// refreshLocked reads the folder when a name, size or time in it has changed.
func (s *Service) refreshLocked() error {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.yaml"))
	if err != nil {
		return fmt.Errorf("config-service: %w", err)
	}
	var state strings.Builder
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("config-service: %w", err)
		}
		fmt.Fprintln(&state, file, info.Size(), info.ModTime().UnixNano())
	}
	if state.String() == s.state && s.current != nil {
		return nil
	}
	var current []document
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("config-service: %w", err)
		}
		var d document
		if err := yaml.Unmarshal(body, &d); err != nil {
			return fmt.Errorf("config-service: %s is no YAML document: %w", file, err)
		}
		if d.Kind != "NetworkConfig" && d.Kind != "ClusterConfig" {
			return fmt.Errorf("config-service: %s has kind %q, want NetworkConfig or ClusterConfig", file, d.Kind)
		}
		sum := sha256.Sum256(body)
		d.hash, d.file = hex.EncodeToString(sum[:]), file
		s.byHash[d.hash] = body
		current = append(current, d)
	}
	if len(current) == 0 {
		return fmt.Errorf("config-service: there is no *.yaml in %s", s.dir)
	}
	s.current, s.state = current, state.String()
	return nil
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}
