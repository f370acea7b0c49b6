//go:build unix

package supervisor

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalWidth in columns; 100 when the terminal does not say.
func terminalWidth(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col < 20 {
		return 100
	}
	return int(size.Col)
}
