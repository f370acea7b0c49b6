package configservice

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The documents that the samples ship must be what this client reads.
func TestSamplesDecode(t *testing.T) {
	files, err := filepath.Glob("../../deploy/samples/config-service/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(raw) }))
		c, hash := New(srv.URL), sum(string(raw))
		if strings.HasPrefix(filepath.Base(file), "network-config") {
			n, err := c.NetworkConfig(context.Background(), hash)
			require.NoError(t, err, file)
			require.NotEmpty(t, n.Manifests)
			for _, m := range n.Manifests {
				require.NotEmpty(t, m.GetAPIVersion()+m.GetKind()+m.GetName())
			}
		} else {
			cc, err := c.ClusterConfig(context.Background(), hash)
			require.NoError(t, err, file)
			for _, component := range []string{"pd", "tikv", "tidb", "tiflash"} {
				require.NotEmpty(t, cc.Image(component), component)
			}
		}
		srv.Close()
	}
}
