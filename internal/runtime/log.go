package runtime

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LogOptions say how a process logs.
type LogOptions struct {
	Format string // json or text
	Level  string // debug, info, warn or error
}

// AddTo registers --log-format and --log-level.
func (o *LogOptions) AddTo(fs *pflag.FlagSet) {
	fs.StringVar(&o.Format, "log-format", "json", "json or text")
	fs.StringVar(&o.Level, "log-level", "info", "debug, info, warn or error")
}

// Validate refuses an unknown format or level.
func (o *LogOptions) Validate() error {
	_, err := o.NewLogger(io.Discard)
	return err
}

// NewLogger returns a logger that writes to w.
func (o *LogOptions) NewLogger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", o.Level)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch o.Format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want json or text", o.Format)
}

// InstallLogger makes log the logger of everything in the process that brings
// its own: slog, controller-runtime and klog (client-go). Call it once, first.
func InstallLogger(log *slog.Logger) {
	slog.SetDefault(log)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	klog.SetSlogLogger(log.With("logger", "client-go"))
}
