package main

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// kind is a kind and the words that users may use for it.
type kind struct {
	Name, Plural string
	Short        []string
	// Operated kinds have operations, and so verbs.
	Operated bool
}

// kinds in the order in which they build on each other.
var kinds = []kind{
	{v1.KindAccount, "accounts", []string{"acct"}, false},
	{v1.KindProviderType, "providertypes", []string{"ptype", "pt"}, true},
	{v1.KindProvider, "providers", []string{"prov"}, true},
	{v1.KindNetwork, "networks", []string{"net", "nets"}, true},
	{v1.KindNetworkPeer, "networkpeers", []string{"peer"}, false},
	{v1.KindCluster, "clusters", []string{"tidb"}, true},
	{v1.KindBackup, "backups", []string{"bk"}, false},
	{v1.KindRestore, "restores", []string{"rst"}, false},
	{v1.KindImport, "imports", []string{"imp"}, false},
	{v1.KindTiCDC, "ticdcs", []string{"cdc"}, false},
}

func parseKind(word string) (kind, error) {
	w := strings.ToLower(word)
	w, _, _ = strings.Cut(w, ".") // networks.cloud.pingcap.com
	for _, k := range kinds {
		if w == strings.ToLower(k.Name) || w == k.Plural || slices.Contains(k.Short, w) {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("unknown kind %q; there are %s", word, strings.Join(plurals(), ", "))
}

func plurals() []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.Plural)
	}
	return names
}
