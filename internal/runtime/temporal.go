package runtime

import (
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// TemporalOptions returns the options of a Temporal client from Temporal's own
// environment variables and configuration file (TEMPORAL_ADDRESS,
// TEMPORAL_NAMESPACE, TEMPORAL_TLS_…, TEMPORAL_API_KEY, TEMPORAL_PROFILE; see
// go.temporal.io/sdk/contrib/envconfig). The namespace is "infra" when nothing
// says otherwise. Metrics of the SDK go to metrics; nil for none.
func TemporalOptions(log *slog.Logger, metrics client.MetricsHandler) (client.Options, error) {
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return opts, fmt.Errorf("temporal client settings (TEMPORAL_… variables): %w", err)
	}
	if opts.Namespace == "" || (opts.Namespace == client.DefaultNamespace && os.Getenv("TEMPORAL_NAMESPACE") == "") {
		opts.Namespace = DefaultNamespace
	}
	if opts.HostPort == "" {
		opts.HostPort = client.DefaultHostPort
	}
	opts.Logger = log.With("logger", "temporal")
	opts.MetricsHandler = metrics
	return opts, nil
}
