package supervisor

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// board writes to the screen: lines that stay, and one progress line for each
// followed object, which a terminal redraws in place. Where the output is no
// terminal, a progress line is printed when it says something new.
type board struct {
	out      io.Writer
	terminal bool
	width    int
	start    time.Time

	mu    sync.Mutex
	keys  []string
	lines map[string]string
	drawn int // progress lines on the screen now
}

func newBoard(out io.Writer) *board {
	b := &board{out: out, width: 160, start: time.Now(), lines: map[string]string{}}
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" {
			b.terminal = true
			b.width = terminalWidth(f)
		}
	}
	return b
}

// say prints lines that stay.
func (b *board) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	_, _ = fmt.Fprintf(b.out, format+"\n", args...)
	b.draw()
}

// stamp prints a line that stays, with the time since the start.
func (b *board) stamp(format string, args ...any) {
	b.say("%s  %s", elapsed(time.Since(b.start)), fmt.Sprintf(format, args...))
}

// progress sets the progress line of key.
func (b *board) progress(key, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, known := b.lines[key]
	if known && old == line {
		return
	}
	if !known {
		b.keys = append(b.keys, key)
	}
	b.lines[key] = line
	if !b.terminal {
		_, _ = fmt.Fprintf(b.out, "%s  %s\n", elapsed(time.Since(b.start)), line)
		return
	}
	b.erase()
	b.draw()
}

// freeze leaves the progress lines on the screen as they are and forgets them.
func (b *board) freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys, b.lines, b.drawn = nil, map[string]string{}, 0
}

// erase removes the progress lines from a terminal, draw puts them back.
func (b *board) erase() {
	if b.drawn > 0 {
		_, _ = fmt.Fprintf(b.out, "\x1b[%dA\x1b[J", b.drawn)
		b.drawn = 0
	}
}

func (b *board) draw() {
	if !b.terminal {
		return
	}
	for _, key := range b.keys {
		line := elapsed(time.Since(b.start)) + "  " + b.lines[key]
		_, _ = fmt.Fprintln(b.out, clip(line, b.width-1))
	}
	b.drawn = len(b.keys)
}

// clip cuts a line to n columns: a wrapped line could not be erased.
func clip(line string, n int) string {
	r := []rune(strings.ReplaceAll(line, "\n", " "))
	if len(r) <= n || n < 2 {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// elapsed is a duration in seconds, six columns wide.
func elapsed(d time.Duration) string { return fmt.Sprintf("%5.1fs", d.Seconds()) }
