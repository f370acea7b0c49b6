package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Server is the HTTP API. Cloud and Supervisor may be nil; their routes then
// answer 503.
type Server struct {
	Faults     *Registry
	Cloud      Cloud
	Supervisor Supervisor
}

// maxBody bounds a posted fault.
const maxBody = 64 << 10

// Handler returns the routes that GET / documents.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.help)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /faults", s.listFaults)
	mux.HandleFunc("POST /faults", s.addFault)
	mux.HandleFunc("DELETE /faults", s.clearFaults)
	mux.HandleFunc("DELETE /faults/{id}", s.removeFault)
	mux.HandleFunc("GET /inventory", s.inventory)
	mux.HandleFunc("GET /calls", s.calls)
	mux.HandleFunc("DELETE /calls", s.forgetCalls)
	mux.HandleFunc("GET /processes", s.processes)
	mux.HandleFunc("POST /processes/{name}/{action}", s.act)
	mux.HandleFunc("POST /outage/{system}", s.outage)
	mux.HandleFunc("DELETE /outage/{system}", s.outage)
	return onlyLocalCallers(mux)
}

// onlyLocalCallers refuses web pages: whoever can run a program here may use
// the API, a page in a browser may not.
func onlyLocalCallers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" && r.Method != http.MethodGet {
			fail(w, http.StatusForbidden, errors.New("requests of web pages are refused"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) help(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, Help)
}

func (s *Server) listFaults(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.Faults.List())
}

func (s *Server) addFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		fail(w, http.StatusBadRequest, fmt.Errorf("the body is no fault: %w", err))
		return
	}
	added, err := s.Faults.Add(f)
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	answer(w, http.StatusCreated, added)
}

func (s *Server) clearFaults(w http.ResponseWriter, r *http.Request) {
	n := s.Faults.Clear(Target(r.URL.Query().Get("target")))
	answer(w, http.StatusOK, map[string]int{"removed": n})
}

func (s *Server) removeFault(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !s.Faults.Remove(id) {
		fail(w, http.StatusNotFound, fmt.Errorf("fault %s is not on: it was removed, used up or expired", id))
		return
	}
	answer(w, http.StatusOK, map[string]int{"removed": 1})
}

func (s *Server) inventory(w http.ResponseWriter, r *http.Request) {
	if s.Cloud == nil {
		fail(w, http.StatusServiceUnavailable, errors.New("there is no AWS emulator in this stack"))
		return
	}
	q := r.URL.Query()
	all, _ := strconv.ParseBool(q.Get("all"))
	list, err := s.Cloud.Inventory(r.Context(), InventoryQuery{Owner: q.Get("id"), Cluster: q.Get("cluster"), All: all})
	if err != nil {
		fail(w, http.StatusBadGateway, fmt.Errorf("list the AWS emulator: %w", err))
		return
	}
	if list == nil {
		list = []Resource{}
	}
	answer(w, http.StatusOK, list)
}

func (s *Server) calls(w http.ResponseWriter, r *http.Request) {
	if s.Cloud == nil {
		fail(w, http.StatusServiceUnavailable, errors.New("there is no AWS emulator in this stack"))
		return
	}
	q := r.URL.Query()
	after, errAfter := optionalNumber(q.Get("after"))
	limit, errLimit := optionalNumber(q.Get("limit"))
	if err := errors.Join(errAfter, errLimit); err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	list := s.Cloud.Calls(CallQuery{Service: q.Get("service"), Operation: q.Get("operation"), After: after, Limit: int(limit)})
	if list == nil {
		list = []Call{}
	}
	answer(w, http.StatusOK, list)
}

func (s *Server) forgetCalls(w http.ResponseWriter, _ *http.Request) {
	if s.Cloud != nil {
		s.Cloud.ForgetCalls()
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) processes(w http.ResponseWriter, _ *http.Request) {
	if s.Supervisor == nil {
		fail(w, http.StatusServiceUnavailable, errNoSupervisor)
		return
	}
	answer(w, http.StatusOK, s.Supervisor.Processes())
}

func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	if s.Supervisor == nil {
		fail(w, http.StatusServiceUnavailable, errNoSupervisor)
		return
	}
	name, action := r.PathValue("name"), Action(r.PathValue("action"))
	switch action {
	case ActionKill, ActionStop, ActionStart, ActionWipe:
	default:
		fail(w, http.StatusNotFound, fmt.Errorf("action %q is unknown: use kill, stop, start or wipe", action))
		return
	}
	if err := s.Supervisor.Do(r.Context(), name, action); err != nil {
		fail(w, statusOf(err), fmt.Errorf("%s %s: %w", action, name, err))
		return
	}
	answer(w, http.StatusOK, s.Supervisor.Processes())
}

// outage starts an outage (POST, ?for=60s by default) or ends it (DELETE).
func (s *Server) outage(w http.ResponseWriter, r *http.Request) {
	if s.Supervisor == nil {
		fail(w, http.StatusServiceUnavailable, errNoSupervisor)
		return
	}
	system, length := r.PathValue("system"), time.Duration(0)
	if r.Method == http.MethodPost {
		length = time.Minute
		if text := r.URL.Query().Get("for"); text != "" {
			var err error
			if length, err = time.ParseDuration(text); err != nil || length <= 0 {
				fail(w, http.StatusBadRequest, fmt.Errorf("for=%q is not a length such as 60s", text))
				return
			}
		}
	}
	if err := s.Supervisor.Outage(r.Context(), system, length); err != nil {
		fail(w, statusOf(err), fmt.Errorf("outage of %s: %w", system, err))
		return
	}
	answer(w, http.StatusOK, map[string]any{"system": system, "for": Duration(length)})
}

var errNoSupervisor = errors.New("no supervisor runs this part of the stack")

func statusOf(err error) int {
	if errors.Is(err, ErrNotFound) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

func optionalNumber(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(body)
}

// fail answers {"message": ...}.
func fail(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"message": err.Error()})
}
