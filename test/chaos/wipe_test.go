package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
)

// TestWipe has Temporal lose all its data while an operation of every type is in
// its middle. The bridge's resync tells of each object again, and everything
// ends as ever.
func TestWipe(t *testing.T) {
	if !full() {
		wipeOnce(t)
		return
	}
	expect, boundaries := dryRun(t)
	ownStack(t)
	l := newLane(t, "wipe", "--resync", "20s") // in life it is ten minutes
	o := &outages{t: t, j: &journey{lane: l, part: "wipe", expect: expect}, boundaries: boundaries}
	o.prepareAll()
	o.round(0, "Temporal wiped", l.WipeTemporal)
	failUnconverged(t, "wipe")
}

// wipeOnce is the short subset: one creation, and what had ended before.
func wipeOnce(t *testing.T) {
	golden, err := lab.Golden()
	require.NoError(t, err)
	ownStack(t)
	l := newLane(t, "wipe", "--resync", "5s")
	o := &outages{t: t, j: &journey{lane: l, part: "wipe", expect: newStates()}, boundaries: golden}
	o.prepare(v1.KindProviderType, "stays", nil)
	o.create(l.Named(v1.KindProvider, "fresh"), of("stays"))
	o.await()
	require.NoError(t, l.WipeTemporal(within(t, patience)))
	o.settle("Temporal wiped")
	o.held = nil
	o.remove(l.Named(v1.KindProvider, "fresh"))
	o.await()
	o.settle("after that")
	failUnconverged(t, "wipe")
}
