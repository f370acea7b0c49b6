// Package admission decides what may be written: it holds the rules that need
// more than one object, or an object before and after a change, and the values
// that are filled in for the user. The schema's own rules are not repeated.
//
// It is pure: whoever calls it reads what the rules look at. The webhooks read
// their caches, the first step of an operation reads the worker's, so that what
// a webhook refuses is refused by the operation in the same words when there
// was no webhook, or when two requests raced.
package admission

import (
	"github.com/tidbcloud/infra-orchestrator/plan"
)

// Verdict on a request.
type Verdict struct {
	// Problems refuse the request, all of them at once. None means that it is
	// allowed.
	Problems []plan.Problem
	// Warnings are shown to whoever asked; the request is allowed all the same.
	Warnings []string
}

// allowed is the verdict on what no rule looks at.
var allowed = Verdict{}
