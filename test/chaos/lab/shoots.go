package lab

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// shootWrites are a lane's writes to the specs of Shoots, by namespace/name. All
// writers of ours work under one lock, so none of them gets into another's way.
type shootWrites struct {
	flying map[string]int    // writes in flight
	last   map[string]uint64 // version that the last write has made
	// hindered tells of writes that met one another.
	hindered []string
	// conflicts counts all that were refused as outdated; most are about
	// gardenlet, which writes the status of the same object at any time.
	conflicts int
}

// Hindered tells of writes to one Shoot's spec that were in flight together, and
// of those that were refused since another one of ours had come in between.
func (g *Gate) Hindered() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.writes.hindered)
}

// Conflicts is how many writes to Shoots were refused as outdated, no matter
// who came in between.
func (g *Gate) Conflicts() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes.conflicts
}

// shootOf is namespace/name of the Shoot in a path.
func shootOf(path string) string {
	parts := strings.Split(path, "/")
	i := slices.Index(parts, "shoots")
	if i < 1 || i+1 >= len(parts) {
		return ""
	}
	return parts[i-1] + "/" + parts[i+1]
}

// shootSpec is the Shoot whose spec a request writes; empty for all others.
func shootSpec(system System, r *http.Request) string {
	_, name, isShoot := strings.Cut(r.URL.Path, "/shoots/")
	if system != Garden || !isShoot || strings.Contains(name, "/") || (r.Method != http.MethodPatch && r.Method != http.MethodPut) {
		return ""
	}
	return shootOf(r.URL.Path)
}

// begins notes that a write is on its way.
func (g *Gate) begins(shoot string) {
	if shoot == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &g.writes
	if w.flying[shoot]++; w.flying[shoot] > 1 {
		w.hindered = append(w.hindered, fmt.Sprintf("%d writes to the Shoot %s were in flight at once", w.flying[shoot], shoot))
	}
}

// ends notes how a write has ended; res is nil when there was no answer. A
// refusal is our own doing when one of our writes is newer than what the refused
// one was made from.
func (g *Gate) ends(shoot string, body []byte, res *http.Response, answer []byte) {
	if shoot == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &g.writes
	w.flying[shoot]--
	switch {
	case res == nil:
	case res.StatusCode < 300:
		w.last[shoot] = max(w.last[shoot], versionIn(answer))
	case res.StatusCode == http.StatusConflict:
		w.conflicts++
		if from := versionIn(body); from > 0 && w.last[shoot] > from {
			w.hindered = append(w.hindered, fmt.Sprintf("a write to the Shoot %s, made from version %d, met another one of ours, version %d", shoot, from, w.last[shoot]))
		}
	}
}

// versionIn is metadata.resourceVersion of an object or a merge patch in JSON;
// 0 when it names none.
func versionIn(raw []byte) uint64 {
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return 0
	}
	n, _ := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	return n
}

// admit replaces the shoot's address in the answer of adminkubeconfig by one
// behind the gate, and keeps the credentials.
func (g *Gate) admit(path string, answer []byte) ([]byte, error) {
	var request map[string]any
	if err := json.Unmarshal(answer, &request); err != nil {
		return nil, fmt.Errorf("adminkubeconfig: %w", err)
	}
	status, _ := request["status"].(map[string]any)
	encoded, _ := status["kubeconfig"].(string)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("adminkubeconfig: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("adminkubeconfig: %w", err)
	}
	u, err := newUpstream(config)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	id := hex.EncodeToString(sum[:6])
	g.mu.Lock()
	g.shoots[id] = u
	g.opened[shootOf(path)] = config
	g.mu.Unlock()
	rewritten, err := clientcmd.Write(*kubeconfigFor(g.kubeURL + shootPrefix + id))
	if err != nil {
		return nil, err
	}
	status["kubeconfig"] = base64.StdEncoding.EncodeToString(rewritten)
	return json.Marshal(request)
}

// ShootConfig reaches the cluster of a Shoot that a worker of the lane has
// opened; nil when none has.
func (g *Gate) ShootConfig(shoot string) *rest.Config {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.opened[shoot]; c != nil {
		return rest.CopyConfig(c)
	}
	return nil
}
