package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/tidbcloud/infra-orchestrator/dev/temporal/internal/devserver"
)

// parseFlags reads our flags, which are those of "temporal server start-dev"
// with other defaults: free ports instead of 7233 and 8233, our namespace, our
// search attributes.
func parseFlags(args []string, stderr io.Writer) (devserver.Options, error) {
	if len(args) >= 2 && args[0] == "server" && args[1] == "start-dev" {
		args = args[2:]
	}
	opts := devserver.Options{
		SearchAttributes: devserver.DefaultSearchAttributes(),
		Dynamic:          map[string]any{},
	}
	fs := flag.NewFlagSet("temporaldev", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&opts.IP, "ip", "127.0.0.1", "`address` to listen on; nothing here authenticates, so leave it on loopback")
	fs.IntVar(&opts.Port, "port", 0, "gRPC `port` of the frontend; 0 takes a free one")
	fs.IntVar(&opts.UIPort, "ui-port", 0, "HTTP `port` of the web UI; 0 takes a free one")
	fs.BoolVar(&opts.Headless, "headless", false, "serve no web UI")
	fs.StringVar(&opts.Namespace, "namespace", "infra", "Temporal `namespace` to create")
	fs.StringVar(&opts.DBFile, "db-filename", "", "SQLite `file` to keep state in; empty keeps it in memory. Safe against kill -9 (write-ahead log)")
	fs.Func("search-attribute", "further search attribute, `NAME=TYPE` (Keyword, Text, Int, Double, Bool, Datetime, KeywordList); may be repeated",
		func(v string) error { return addSearchAttribute(opts.SearchAttributes, v) })
	fs.Func("dynamic-config-value", "dynamic configuration of the server, `KEY=JSON`; may be repeated",
		func(v string) error { return addDynamicValue(opts.Dynamic, v) })
	level := fs.String("log-level", "error", "debug, info, warn, error or never; logs go to standard error")
	format := fs.String("log-format", "text", "text or json")
	if err := fs.Parse(args); err != nil {
		return opts, err
	}
	if fs.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q: temporaldev takes flags only, see --help", fs.Arg(0))
	}
	var err error
	opts.Logger, err = newLogger(stderr, *level, *format)
	return opts, err
}

func addSearchAttribute(into map[string]enumspb.IndexedValueType, arg string) error {
	name, kind, ok := strings.Cut(arg, "=")
	if !ok || name == "" {
		return fmt.Errorf("want NAME=TYPE")
	}
	t, err := enumspb.IndexedValueTypeFromString(kind)
	if err != nil || t == enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED {
		return fmt.Errorf("%q is not a type of search attribute", kind)
	}
	into[name] = t
	return nil
}

// addDynamicValue accepts JSON, and takes what is not JSON for a plain string.
func addDynamicValue(into map[string]any, arg string) error {
	key, raw, ok := strings.Cut(arg, "=")
	if !ok || key == "" {
		return fmt.Errorf("want KEY=JSON")
	}
	var value any
	if err := json.Unmarshal([]byte(raw), &value); err != nil {
		value = raw
	}
	// Dynamic configuration holds whole numbers as int; JSON makes them float64.
	if f, isFloat := value.(float64); isFloat && f == float64(int(f)) {
		value = int(f)
	}
	into[key] = value
	return nil
}

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	if level == "never" {
		return slog.New(slog.DiscardHandler), nil
	}
	var min slog.Level
	if err := min.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is none of debug, info, warn, error, never", level)
	}
	handlerOptions := &slog.HandlerOptions{Level: min}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, handlerOptions)), nil
	case "text", "pretty": // "pretty" is what start-dev calls it
		return slog.New(slog.NewTextHandler(w, handlerOptions)), nil
	}
	return nil, fmt.Errorf("--log-format: %q is neither text nor json", format)
}
