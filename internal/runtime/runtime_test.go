package runtime

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
)

func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func TestLoadConfig(t *testing.T) {
	full := `
gardener: {kubeconfigPath: /etc/garden/kubeconfig, projectName: core}
configService: {url: "http://config-service:8080"}
aws: {endpoint: ""}
env: prod
`
	for name, tc := range map[string]struct {
		file string // none when empty
		env  map[string]string
		want Config
		err  string
	}{
		"no file, defaults": {
			want: Config{Env: "dev", Gardener: GardenerConfig{ProjectName: "core"}, Webhooks: true},
		},
		"file": {
			file: full,
			want: Config{
				Gardener:      GardenerConfig{KubeconfigPath: "/etc/garden/kubeconfig", ProjectName: "core"},
				ConfigService: ConfigServiceConfig{URL: "http://config-service:8080"}, Env: "prod", Webhooks: true,
			},
		},
		"environment wins over the file": {
			file: full,
			env: map[string]string{
				"GARDENER_CONFIG": "/dev/garden", "CONFIG_SERVICE_URL": "http://127.0.0.1:1",
				"AWS_ENDPOINT_URL": "http://127.0.0.1:2", "INFRA_ENV": "stage", "ENABLE_WEBHOOKS": "false",
			},
			want: Config{
				Gardener:      GardenerConfig{KubeconfigPath: "/dev/garden", ProjectName: "core"},
				ConfigService: ConfigServiceConfig{URL: "http://127.0.0.1:1"},
				AWS:           AWSConfig{Endpoint: "http://127.0.0.1:2"}, Env: "stage",
			},
		},
		"the file is checked before the environment overrides it": {
			file: "configService: {url: nonsense}",
			env:  map[string]string{"CONFIG_SERVICE_URL": "http://127.0.0.1:1"},
			err:  "configService.url is not an http:// or https:// address",
		},
		"the environment is checked, too": {
			env: map[string]string{"AWS_ENDPOINT_URL": "localhost:5000"}, err: "environment: aws.endpoint",
		},
		"a misspelt key":           {file: "gardner: {}", err: "gardner"},
		"a project too long":       {file: "gardener: {projectName: abcdefghijk}", err: "gardener.projectName"},
		"a password in a URL":      {env: map[string]string{"CONFIG_SERVICE_URL": "http://u:s3cret@h"}, err: "must not contain credentials"},
		"an environment name":      {env: map[string]string{"INFRA_ENV": "Prod!"}, err: "env is"},
		"a switch that is no bool": {env: map[string]string{"ENABLE_WEBHOOKS": "perhaps"}, err: "ENABLE_WEBHOOKS"},
	} {
		t.Run(name, func(t *testing.T) {
			path := ""
			if tc.file != "" {
				path = filepath.Join(t.TempDir(), "config.yaml")
				require.NoError(t, os.WriteFile(path, []byte(tc.file), 0o600))
			}
			got, err := LoadConfig(path, env(tc.env))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.NotContains(t, err.Error(), "s3cret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestLoadConfigMissingFile(t *testing.T) {
	_, err := LoadConfig(filepath.Join(t.TempDir(), "none.yaml"), env(nil))
	require.ErrorContains(t, err, "--config")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		err  string
	}{
		"defaults":              {},
		"gitops":                {args: []string{"--enable-gitops-v2"}, err: "--enable-gitops-v2 is not supported yet"},
		"o11y":                  {args: []string{"--enable-o11y-agent"}, err: "--enable-o11y-agent is not supported yet"},
		"pprof without a place": {args: []string{"--pprof", "--metrics-bind-address=0"}, err: "--pprof needs"},
		"namespace":             {args: []string{"--namespace=A_b"}, err: "--namespace"},
		"log level":             {args: []string{"--log-level=loud"}, err: "--log-level"},
		"log format":            {args: []string{"--log-format=xml"}, err: "--log-format"},
	} {
		t.Run(name, func(t *testing.T) {
			var f Flags
			fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
			f.AddTo(fs, ":8080", ":8081")
			require.NoError(t, fs.Parse(tc.args))
			err := f.Validate()
			if tc.err == "" {
				require.NoError(t, err)
				require.Equal(t, "infra", f.Namespace)
				require.Equal(t, ":8080", f.MetricsAddr)
				return
			}
			require.ErrorContains(t, err, tc.err)
		})
	}
}

// Whatever controller-runtime logs comes out of the same handler, with V(1) as
// debug.
func TestLoggerIsEverybodys(t *testing.T) {
	previous := slog.Default()
	t.Cleanup(func() { slog.SetDefault(previous) })
	var out bytes.Buffer
	log, err := (&LogOptions{Format: "json", Level: "info"}).NewLogger(&out)
	require.NoError(t, err)
	InstallLogger(log)

	ctrl.Log.WithName("x").V(1).Info("too quiet")
	ctrl.Log.WithName("x").Info("hello", "kind", "Network")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
	require.Equal(t, "hello", line["msg"])
	require.Equal(t, "Network", line["kind"])
}

func TestTemporalOptions(t *testing.T) {
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
	for name, tc := range map[string]struct{ address, namespace, wantAddress, wantNamespace string }{
		"defaults":          {wantAddress: "localhost:7233", wantNamespace: "infra"},
		"from environment":  {address: "t:1", namespace: "other", wantAddress: "t:1", wantNamespace: "other"},
		"really on default": {namespace: "default", wantAddress: "localhost:7233", wantNamespace: "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TEMPORAL_ADDRESS", tc.address)
			t.Setenv("TEMPORAL_NAMESPACE", tc.namespace)
			opts, err := TemporalOptions(slog.New(slog.DiscardHandler), nil)
			require.NoError(t, err)
			require.Equal(t, tc.wantAddress, opts.HostPort)
			require.Equal(t, tc.wantNamespace, opts.Namespace)
		})
	}
}

func TestVersionLine(t *testing.T) {
	defer func(v string) { version = v }(version)
	version = "v9.8.7"
	require.Regexp(t, `^bridge v9\.8\.7 \(go1\.\S+, \w+/\w+\)$`, VersionLine("bridge"))
}
