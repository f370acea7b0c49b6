package webhooks

import (
	"context"
	"net/http"
	"slices"
	"strings"

	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Paths of the webhooks: a prefix and the kind in lower case.
const (
	mutatePrefix   = "/mutate-cloud-pingcap-com-v1-"
	validatePrefix = "/validate-cloud-pingcap-com-v1-"
)

// MutatePath is where a kind's defaults are filled in.
func MutatePath(kind string) string { return mutatePrefix + strings.ToLower(kind) }

// ValidatePath is where a kind is judged.
func ValidatePath(kind string) string { return validatePrefix + strings.ToLower(kind) }

// Kinds that have webhooks: all.
func Kinds() (names []string) {
	for _, k := range v1.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// Server is where webhooks are registered: controller-runtime's.
type Server interface {
	Register(path string, hook http.Handler)
}

// Register registers the webhooks of all kinds.
func Register(server Server, caches *Caches, options Options) {
	for path, hook := range Handlers(caches, options) {
		server.Register(path, hook)
	}
}

// Handlers are the webhooks by path.
func Handlers(caches *Caches, options Options) map[string]*webhook.Webhook {
	out := map[string]*webhook.Webhook{}
	handle(out, accounts, caches, &options)
	handle(out, providerTypes, caches, &options)
	handle(out, providers, caches, &options)
	handle(out, networks, caches, &options)
	handle(out, clusters, caches, &options)
	handle(out, peers, caches, &options)
	handle(out, backups, caches, &options)
	handle(out, restores, caches, &options)
	handle(out, imports, caches, &options)
	handle(out, ticdcs, caches, &options)
	return out
}

func handle[T v1.Object](out map[string]*webhook.Webhook, r rules[T], caches *Caches, options *Options) {
	if !slices.Contains(Kinds(), r.kind) {
		panic("webhooks: " + r.kind + " is none of Kinds")
	}
	h := &handler[T]{rules: r, caches: caches, options: options}
	out[MutatePath(r.kind)] = &webhook.Webhook{Handler: webhook.HandlerFunc(func(ctx context.Context, req webhook.Request) webhook.Response {
		return h.mutate(ctx, req)
	})}
	out[ValidatePath(r.kind)] = &webhook.Webhook{Handler: webhook.HandlerFunc(func(ctx context.Context, req webhook.Request) webhook.Response {
		return h.validate(ctx, req)
	})}
}
