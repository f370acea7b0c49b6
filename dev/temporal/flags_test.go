package main

import (
	"io"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
)

func TestParseFlagsTakesWhatStartDevTakes(t *testing.T) {
	opts, err := parseFlags([]string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", "7000", "--namespace", "n", "--headless",
		"--log-level", "never", "--log-format", "pretty", "--search-attribute", "Extra=Int",
		"--dynamic-config-value", "limit.x=5", "--dynamic-config-value", "flag.y=true",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Port != 7000 || opts.Namespace != "n" || !opts.Headless {
		t.Errorf("got %+v", opts)
	}
	if opts.SearchAttributes["Extra"] != enumspb.INDEXED_VALUE_TYPE_INT || opts.SearchAttributes["InfraKind"] != enumspb.INDEXED_VALUE_TYPE_KEYWORD {
		t.Errorf("search attributes: %v", opts.SearchAttributes)
	}
	if opts.Dynamic["limit.x"] != 5 || opts.Dynamic["flag.y"] != true {
		t.Errorf("dynamic configuration: %#v", opts.Dynamic)
	}
}

func TestParseFlagsRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"a stray argument":          {"start"},
		"an unknown type":           {"--search-attribute", "X=Nope"},
		"an attribute without type": {"--search-attribute", "X"},
		"a dynamic key alone":       {"--dynamic-config-value", "x"},
		"an unknown log level":      {"--log-level", "loud"},
		"an unknown log format":     {"--log-format", "xml"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseFlags(args, io.Discard); err == nil {
				t.Errorf("%v was accepted", args)
			}
		})
	}
}
