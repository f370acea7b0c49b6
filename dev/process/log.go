package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// tailLines and tailBytes bound what LogTail returns.
const (
	tailLines = 12
	tailBytes = 16 << 10
)

// LogTail returns the last lines of a log file, indented, with a heading, for
// a message to a person.
func LogTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd)
	}
	data, err := io.ReadAll(f)
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return fmt.Sprintf("its log %s is empty", path)
	}
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Sprintf("its log %s ends with:\n    %s", path, bytes.Join(lines, []byte("\n    ")))
}
