package kube

import (
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/component-base/cli"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	kubectl "k8s.io/kubectl/pkg/cmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func init() {
	// Each component applies its log settings; only the first may win.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
}

// Kubectl runs kubectl with the given arguments (without the program's name)
// and ends the process with its exit code.
func Kubectl(args []string) {
	os.Args = append([]string{"kubectl"}, args...)
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		// kubectl prints errors itself, except this kind.
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// LogTo sends the logs of all Kubernetes components of this process to w, which
// must be safe for concurrent use; a file is. Call it once, before Start. It returns the logger for
// further components of the process.
func LogTo(w io.Writer) logr.Logger {
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w)))
	klog.SetLogger(log)
	ctrllog.SetLogger(log)
	return log
}
