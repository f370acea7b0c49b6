package bridge

import (
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"time"
)

// RandomID mints an identity: 16 lower-case hexadecimal digits.
func RandomID() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails: it ends the process rather than return weak bytes
	return hex.EncodeToString(b)
}

// Jittered returns a source of durations spread evenly over d ±20 %, so that
// objects that were created together are not signalled together for ever.
// random returns numbers in [0,1); nil means math/rand.
func Jittered(d time.Duration, random func() float64) func() time.Duration {
	if random == nil {
		random = mathrand.Float64
	}
	return func() time.Duration {
		return time.Duration(float64(d) * (0.8 + 0.4*random()))
	}
}
