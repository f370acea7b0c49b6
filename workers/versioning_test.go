package workers_test

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/workers"
)

// registered notes how workflows are registered.
type registered map[string]workflow.VersioningBehavior

func (r registered) RegisterWorkflow(any) { panic("workflows need a name") }

func (r registered) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	r[o.Name] = o.VersioningBehavior
}

func (r registered) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {
	panic("none is dynamic")
}

// A run never changes its code: operations end where they began, objects move
// when they begin anew.
func TestEveryWorkflowIsPinned(t *testing.T) {
	r := registered{}
	workers.RegisterWorkflows(r)
	require.Contains(t, r, "Network")
	require.Contains(t, r, "CreateNetwork")
	for name, behaviour := range r {
		require.Equal(t, workflow.VersioningBehaviorPinned, behaviour, name)
	}
}

func TestVersioningFlags(t *testing.T) {
	for _, c := range []struct {
		args    []string
		version string
		refusal string
	}{
		{nil, "devel", ""},
		{[]string{"--build-id="}, "devel", ""}, // off: nothing is looked at
		{[]string{"--versioning"}, "v1.2.3", ""},
		{[]string{"--versioning", "--build-id=abc.1"}, "devel", ""},
		{[]string{"--versioning"}, "devel", "--versioning needs --build-id"},
		{[]string{"--versioning", "--build-id="}, "devel", "--build-id"},
		{[]string{"--versioning", "--build-id=__x"}, "devel", "--build-id"},
		{[]string{"--versioning", "--deployment-name=a.b"}, "v1", "--deployment-name"},
		{[]string{"--versioning", "--deployment-name=a:b"}, "v1", "--deployment-name"},
		{[]string{"--versioning", "--deployment-name="}, "v1", "--deployment-name"},
	} {
		var v workers.Versioning
		fs := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		v.AddTo(fs, c.version)
		require.NoError(t, fs.Parse(c.args))
		if err := v.Validate(); c.refusal == "" {
			require.NoError(t, err, "%v", c.args)
		} else {
			require.ErrorContains(t, err, c.refusal, "%v", c.args)
		}
	}
}
