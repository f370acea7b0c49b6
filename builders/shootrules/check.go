// Package shootrules says what Gardener would refuse of a Shoot, before it is
// sent: the static rules of gardener-apiserver (release 1.149) and of the
// admission webhooks of its AWS and GCP extensions.
//
// The API server alone stores the extensions' configurations unread, and a
// Shoot that has a wrong one can be neither created nor deleted
// (gardener#2139). And it answers with the first page of problems in Gardener's
// words; here are all of them, each with the way out.
//
// What needs other objects of the garden (CloudProfile, bindings, seeds) is
// left to the garden.
package shootrules

import (
	"encoding/json"
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Finding is one place where a Shoot breaks a rule.
type Finding struct {
	Rule   string // id of the rule, such as worker-name-length
	Path   string // of the field, such as spec.provider.workers[0].name
	Value  string // of the field, as JSON; empty when the field is missing
	Says   string // the rule, such as "must have at most 15 characters"
	WayOut string // what to do, such as "shorten the name"
}

// String is the finding as one sentence.
func (f Finding) String() string {
	value := f.Value
	if value == "" {
		value = "(missing)"
	}
	return f.Path + " " + value + ": " + f.Says + "; " + f.WayOut
}

// rule is one rule. check calls found for each place that breaks it; a nil
// value means that the field is missing.
type rule struct {
	id, says, wayOut string
	check            func(s *subject, found func(path string, value any))
}

// subject is what is checked.
type subject struct {
	shoot   *gardencorev1beta1.Shoot
	project string
	// old is the Shoot before an update; nil for a new Shoot.
	old *gardencorev1beta1.Shoot
	// configs are those of the Shoot, oldConfigs those of old.
	configs, oldConfigs configs
}

// Check returns everything that Gardener would refuse of a new Shoot in a
// project, in the order of the rules; nil when there is nothing.
func Check(shoot *gardencorev1beta1.Shoot, project string) []Finding {
	s := &subject{shoot: shoot, project: project, configs: decode(shoot)}
	return run(s, static(), creation)
}

// CheckUpdate returns everything that Gardener would refuse of a change from
// old to shoot.
func CheckUpdate(old, shoot *gardencorev1beta1.Shoot, project string) []Finding {
	s := &subject{shoot: shoot, project: project, old: old, configs: decode(shoot), oldConfigs: decode(old)}
	return run(s, static(), update)
}

// static are the rules for every Shoot.
func static() []rule {
	var all []rule
	for _, some := range [][]rule{metadata, spec, workers, blobs, aws, gcp} {
		all = append(all, some...)
	}
	return all
}

// Rules lists the ids of all rules, for tests and documentation.
func Rules() []string {
	var ids []string
	for _, some := range [][]rule{static(), creation, update} {
		for _, r := range some {
			ids = append(ids, r.id)
		}
	}
	return ids
}

func run(s *subject, lists ...[]rule) []Finding {
	var out []Finding
	for _, rules := range lists {
		for _, r := range rules {
			r.check(s, func(path string, value any) {
				out = append(out, Finding{Rule: r.id, Path: path, Value: show(value), Says: r.says, WayOut: r.wayOut})
			})
		}
	}
	return out
}

// show is a value as JSON, cut to 120 characters.
func show(value any) string {
	if value == nil {
		return ""
	}
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte(fmt.Sprint(value))
	}
	if runes := []rune(string(raw)); len(runes) > 120 {
		return string(runes[:119]) + "…"
	}
	return string(raw)
}

// maxFindings keeps a message below one page.
const maxFindings = 30

// Fault is all findings as one fault of class Invalid, or nil when there are
// none. Beyond 30 it counts them only.
func Fault(shoot *gardencorev1beta1.Shoot, findings []Finding) error {
	if len(findings) == 0 {
		return nil
	}
	sentences := make([]string, 0, len(findings))
	for _, f := range findings[:min(len(findings), maxFindings)] {
		sentences = append(sentences, f.String())
	}
	text := sentences[0]
	if len(findings) > 1 {
		var b strings.Builder
		fmt.Fprintf(&b, "Gardener would refuse it for %d reasons", len(findings))
		for i, s := range sentences {
			fmt.Fprintf(&b, "; (%d) %s", i+1, s)
		}
		if more := len(findings) - len(sentences); more > 0 {
			fmt.Fprintf(&b, "; and %d more", more)
		}
		text = b.String()
	}
	return faults.New(faults.Invalid, "InvalidShoot", "shoot "+shoot.Namespace+"/"+shoot.Name, "%s", text).
		WithHint(faults.OwnerUser, "change the Network, or its ProviderType, so that its Shoot becomes as said; the operation then goes on by itself")
}
