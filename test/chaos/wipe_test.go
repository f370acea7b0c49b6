package chaos

import (
	"testing"
)

// TestWipe has Temporal lose all its data while an operation of every type is in
// its middle. The bridge's resync tells of each object again, and everything
// ends as ever.
func TestWipe(t *testing.T) {
	if !full() {
		t.Skip("part of make chaos")
	}
	expect, boundaries := dryRun(t)
	ownStack(t)
	l := newLane(t, "wipe", "--resync", "20s") // in life it is ten minutes
	o := &outages{t: t, j: &journey{lane: l, part: "wipe", expect: expect}, boundaries: boundaries}
	o.prepareAll()
	o.round(0, "Temporal wiped", l.WipeTemporal)
	failUnconverged(t, "wipe")
}
