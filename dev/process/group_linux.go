package process

import "syscall"

// ownGroup puts a child into a process group of its own, out of reach of the
// terminal's Ctrl-C, and has the kernel kill it when this process dies.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func signalGroup(pid int, signal syscall.Signal) { _ = syscall.Kill(-pid, signal) }
