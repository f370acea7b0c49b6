package process

import (
	"os/exec"
	"runtime"
	"sync"
)

// The kernel delivers the parent-death signal when the thread that started the
// child ends, not the process. So one thread that lasts starts all children.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func startOnLastingThread(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
