package stack

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used since it started.
type Usage struct {
	CPU time.Duration // user and system
	RSS int64         // resident now, bytes
	Max int64         // most that was ever resident, bytes
}

// ticks is the unit of /proc/<pid>/stat: USER_HZ is 100 on every Linux that Go
// supports.
const ticks = 100

// UsageOf reads the usage of a process from /proc.
func UsageOf(pid int) (u Usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	if u.CPU, err = cpuOf(stat); err != nil {
		return u, err
	}
	u.RSS, u.Max = kilobytes(status, "VmRSS:"), kilobytes(status, "VmHWM:")
	return u, nil
}

// cpuOf reads utime and stime, fields 14 and 15; the name in field 2 may hold
// spaces and brackets.
func cpuOf(stat []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("/proc/<pid>/stat is %q", stat)
	}
	var sum int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}

func kilobytes(status []byte, name string) int64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
