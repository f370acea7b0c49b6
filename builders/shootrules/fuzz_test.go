package shootrules

import (
	"encoding/json"
	"testing"

	"github.com/tidbcloud/infra-orchestrator/builders"
)

// FuzzCheck: no Shoot, however odd, makes the checker panic, and it is
// deterministic.
func FuzzCheck(f *testing.F) {
	for _, gcp := range []bool{false, true} {
		s, err := builders.Shoot(networkPlan(gcp))
		if err != nil {
			f.Fatal(err)
		}
		raw, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, raw, "core")
	}
	f.Add([]byte(`{}`), []byte(`{"spec":{"provider":{"type":"gcp","infrastructureConfig":null,"workers":[{}]}}}`), "")
	f.Fuzz(func(t *testing.T, a, b []byte, project string) {
		var old, now shoot
		if json.Unmarshal(a, &old) != nil || json.Unmarshal(b, &now) != nil {
			t.Skip()
		}
		first, again := Check(&now, project), Check(&now, project)
		if len(first) != len(again) {
			t.Fatalf("%v, then %v", first, again)
		}
		for i := range first {
			if first[i] != again[i] {
				t.Fatalf("%v, then %v", first[i], again[i])
			}
		}
		_ = Fault(&now, CheckUpdate(&old, &now, project))
	})
}
