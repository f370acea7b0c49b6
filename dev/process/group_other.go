//go:build unix && !linux

package process

import "syscall"

// ownGroup puts a child into a process group of its own, out of reach of the
// terminal's Ctrl-C. Only Linux kills it when this process is killed.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(pid int, signal syscall.Signal) { _ = syscall.Kill(-pid, signal) }
