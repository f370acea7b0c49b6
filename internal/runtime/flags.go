package runtime

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// DefaultNamespace holds our custom resources, and is the Temporal namespace
// of their workflows.
const DefaultNamespace = "infra"

// Flags are the flags that bridge and worker share.
type Flags struct {
	Kubeconfig  string // of the management cluster; see RESTConfig
	Namespace   string // of our custom resources
	ConfigFile  string // see LoadConfig
	MetricsAddr string // "0" serves no metrics
	ProbeAddr   string // of /healthz and /readyz; "0" serves none
	Pprof       bool   // serve /debug/pprof on MetricsAddr
	GitOpsV2    bool   // refused: not supported yet
	O11yAgent   bool   // refused: not supported yet
	Log         LogOptions
}

// AddTo registers the flags. metricsAddr and probeAddr are the process's
// defaults.
func (f *Flags) AddTo(fs *pflag.FlagSet, metricsAddr, probeAddr string) {
	fs.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"kubeconfig of the management cluster (default $KUBECONFIG, ~/.kube/config, then the Pod's own)")
	fs.StringVar(&f.Namespace, "namespace", DefaultNamespace, "namespace of the custom resources; others are not looked at")
	fs.StringVar(&f.ConfigFile, "config", "", "YAML file with the configuration; environment variables override it")
	fs.StringVar(&f.MetricsAddr, "metrics-bind-address", metricsAddr, "address of the Prometheus metrics, 0 for none")
	fs.StringVar(&f.ProbeAddr, "health-probe-bind-address", probeAddr, "address of /healthz and /readyz, 0 for none")
	fs.BoolVar(&f.Pprof, "pprof", false, "serve /debug/pprof on the address of the metrics")
	fs.BoolVar(&f.GitOpsV2, "enable-gitops-v2", false, "not supported yet")
	fs.BoolVar(&f.O11yAgent, "enable-o11y-agent", false, "not supported yet")
	f.Log.AddTo(fs)
}

// Validate refuses what cannot work, before anything is started.
func (f *Flags) Validate() error {
	var errs []error
	if f.GitOpsV2 {
		errs = append(errs, errors.New("--enable-gitops-v2 is not supported yet"))
	}
	if f.O11yAgent {
		errs = append(errs, errors.New("--enable-o11y-agent is not supported yet"))
	}
	if f.Pprof && f.MetricsAddr == "0" {
		errs = append(errs, errors.New("--pprof needs --metrics-bind-address: it is served there"))
	}
	for _, msg := range validation.IsDNS1123Label(f.Namespace) {
		errs = append(errs, fmt.Errorf("--namespace %q: %s", f.Namespace, msg))
	}
	return errors.Join(append(errs, f.Log.Validate())...)
}

// RESTConfig returns how to reach the management cluster: kubeconfig when
// given, else $KUBECONFIG, ~/.kube/config and the Pod's service account, in
// this order.
func RESTConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w", err)
	}
	cfg.UserAgent = rest.DefaultKubernetesUserAgent() + " infra-orchestrator/" + Version()
	return cfg, nil
}
