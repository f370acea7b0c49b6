package e2e

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// TestSystemsAWS runs the AWS activities' own tests against the stack's
// emulator: beside the code they only meet fakes.
func TestSystemsAWS(t *testing.T) {
	defer checker.Suspend()() // these tests make things without any object
	cmd := exec.CommandContext(within(t, 5*time.Minute), "go", "test", "-vet=off", "-count=1", "-run", "Emulator", "./activities/aws")
	cmd.Dir = stack.Root()
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+world.State.AWS)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}
