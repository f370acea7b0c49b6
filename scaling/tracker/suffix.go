package tracker

import "math/rand/v2"

const (
	suffixLength = 6
	alphabet     = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// randomSuffix draws six characters of [a-z0-9]. Uniqueness comes from the check against known names, so the source
// does not need to be cryptographic; the top-level generator of math/rand/v2 is safe for concurrent use.
func randomSuffix() string {
	var b [suffixLength]byte
	for i := range b {
		b[i] = alphabet[rand.IntN(len(alphabet))]
	}
	return string(b[:])
}
