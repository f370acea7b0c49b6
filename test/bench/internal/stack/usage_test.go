package stack

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCPUOf(t *testing.T) {
	d, err := cpuOf([]byte("42 (a (b) c) S 1 42 42 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 1 0 1 1 1"))
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, d)
	_, err = cpuOf([]byte("nonsense"))
	require.Error(t, err)
}

func TestUsageOfMyself(t *testing.T) {
	u, err := UsageOf(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, u.RSS)
	require.GreaterOrEqual(t, u.Max, u.RSS)
}
