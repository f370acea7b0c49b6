package management

import (
	"strconv"
	"sync"
)

// versions remembers which resource version the last write of this process has
// left an object at. The cache learns of a write some milliseconds later, and
// an operation on a cloud that answers at once writes its next report sooner:
// each such report would cost a conflict, a live read and a second write.
//
// Forgetting is harmless, so the memory is simply emptied when it is full.
type versions struct {
	mu sync.Mutex
	of map[string]uint64 // by uid
}

// mostVersions bounds the memory; an entry has about 100 bytes.
const mostVersions = 10000

// newest returns the newer one of the cache's version and the remembered one.
// Versions of one kind are comparable (Kubernetes 1.35 says so officially, and
// etcd's revisions always were); one that is no number is the cache's.
func (v *versions) newest(uid, cached string) string {
	seen, err := strconv.ParseUint(cached, 10, 64)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil || v.of[uid] <= seen {
		return cached
	}
	return strconv.FormatUint(v.of[uid], 10)
}

// wrote remembers the version that a write has left.
func (v *versions) wrote(uid, version string) {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil || len(v.of) >= mostVersions {
		v.of = map[string]uint64{}
	}
	v.of[uid] = max(n, v.of[uid])
}
