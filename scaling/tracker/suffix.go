package tracker

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"math/rand/v2"
)

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

// Derived returns a generator for [NewWithSuffix] of the given length, at most 20, whose suffixes follow from the
// seed: the same seed gives the same sequence. A caller that may lose what it allocated before it has recorded it
// gets the same names again, as long as the known names are the same. It must not be used concurrently.
func Derived(seed string, length int) func() string {
	drawn := 0
	return func() string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", seed, drawn))
		drawn++
		b, n, base := make([]byte, length), new(big.Int).SetBytes(sum[:]), big.NewInt(int64(len(alphabet)))
		for i, digit := 0, new(big.Int); i < length; i++ {
			n.DivMod(n, base, digit)
			b[i] = alphabet[digit.Int64()]
		}
		return string(b)
	}
}
