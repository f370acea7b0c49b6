package runtime

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// TemporalMetrics exports the metrics of Temporal's SDK (temporal_…, listed in
// https://docs.temporal.io/references/sdk-metrics) and those that workflows
// count themselves, such as infra_operation_stalls_total, through r.
func TemporalMetrics(r prometheus.Registerer) (client.MetricsHandler, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(r), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics of Temporal's SDK: %w", err)
	}
	meter := metric.NewMeterProvider(metric.WithReader(exporter)).Meter("temporal-sdk-go")
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{Meter: meter}), nil
}
