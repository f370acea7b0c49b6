package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
)

// describe says what a request is, and whether it changes anything.
func describe(system System, r *http.Request, body []byte) (Call, bool) {
	if system == AWS {
		return describeAWS(r, body)
	}
	c := Call{System: system, Kind: r.Method + " " + kubeKind(r.URL.Path), Identity: r.Method + " " + r.URL.Path}
	if r.Method == http.MethodPost {
		// A creation names its object in the body.
		c.Identity += " " + digest(body)
	}
	return c, !strings.Contains(c.Kind, "selfsubject") && !strings.Contains(c.Kind, "tokenreviews")
}

// kubeKind is the plural and subresource of a path: "shoots/adminkubeconfig".
func kubeKind(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return path
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + strings.Join(parts[2:], "/")
	}
	return parts[0]
}

// reading are the beginnings of operations that change nothing.
var reading = regexp.MustCompile(`^(Describe|Get|List|Head|Assume|Lookup|Test)`)

// restPath makes a kind of a path of Route 53 or S3: ids and names go.
var restPath = regexp.MustCompile(`/(hostedzone|change|tags/hostedzone)/[^/]+`)

func describeAWS(r *http.Request, body []byte) (Call, bool) {
	c := Call{System: AWS}
	form := r.URL.Query()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if f, err := url.ParseQuery(string(body)); err == nil {
			form = f
		}
	}
	switch target, action := r.Header.Get("X-Amz-Target"), form.Get("Action"); {
	case target != "":
		_, c.Kind, _ = strings.Cut(target, ".")
		c.Identity = c.Kind + " " + digest(body)
		return c, !reading.MatchString(c.Kind)
	case action != "":
		c.Kind = action
		c.Identity = c.Kind + " " + digest(body)
		return c, !reading.MatchString(c.Kind)
	}
	c.Kind = r.Method + " " + restKind(r.URL)
	c.Identity = r.Method + " " + r.URL.Path + " " + r.URL.RawQuery
	if strings.HasPrefix(r.URL.Path, "/2013-04-01/") {
		c.Identity += " " + digest(body)
	}
	return c, r.Method != http.MethodGet && r.Method != http.MethodHead
}

func restKind(u *url.URL) string {
	if strings.HasPrefix(u.Path, "/2013-04-01/") {
		return strings.TrimPrefix(restPath.ReplaceAllString(u.Path, "/$1/*"), "/2013-04-01")
	}
	kind := "bucket"
	if strings.Contains(strings.Trim(u.Path, "/"), "/") {
		kind = "object"
	}
	for _, key := range slices.Sorted(maps.Keys(u.Query())) {
		if key != "x-id" {
			return kind + "?" + key
		}
	}
	return kind
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:6])
}

// attribute finds out which activity makes the call. Reports of status and
// Events come from local activities, all else from others. Of two that run side
// by side it is the one that is named after the system; where that is no help,
// none is named.
func (c *Call) attribute(conductor *Conductor) {
	telling := c.System == Management && (strings.HasSuffix(c.Kind, "/status") || strings.HasSuffix(c.Kind, " events"))
	running := slices.DeleteFunc(conductor.Running(), func(b hook.Border) bool { return b.Local != telling })
	if len(running) > 1 {
		running = slices.DeleteFunc(running, func(b hook.Border) bool { return !strings.HasPrefix(b.Activity, string(c.System)+".") })
	}
	if len(running) == 1 {
		c.Activity, c.Workflow, c.Run = running[0].Activity, running[0].Workflow, running[0].RunID
	}
}

func silent() *log.Logger { return log.New(io.Discard, "", 0) }
