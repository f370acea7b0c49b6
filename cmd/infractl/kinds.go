package main

import (
	"fmt"
	"strings"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// kinds in the order in which they build on each other.
var kinds = v1.Kinds()

func parseKind(word string) (v1.Kind, error) {
	for _, k := range kinds {
		if k.Is(word) {
			return k, nil
		}
	}
	return v1.Kind{}, fmt.Errorf("unknown kind %q; there are %s", word, strings.Join(plurals(), ", "))
}

func plurals() []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.Plural)
	}
	return names
}
