package supervisor

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// quiet is how long a log, which cannot redraw a line, is spared of changes in
// the detail of a progress line.
const quiet = 5 * time.Second

// board writes to the screen: lines that stay, and one progress line for each
// followed object, which a terminal redraws in place. Where the output is no
// terminal, a progress line is printed when its head changes, and for its
// detail every few seconds.
type board struct {
	out      io.Writer
	terminal bool
	width    int
	start    time.Time

	mu    sync.Mutex
	keys  []string
	lines map[string]progressText
	drawn int // progress lines on the screen now
}

// progressText is the current progress of one object.
type progressText struct {
	head, detail string
	printed      time.Time
}

func (p progressText) String() string { return strings.TrimRight(p.head+"  "+p.detail, " ") }

func newBoard(out io.Writer) *board {
	b := &board{out: out, width: 160, start: time.Now(), lines: map[string]progressText{}}
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
func (b *board) progress(key, head, detail string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, known := b.lines[key]
	if known && old.head == head && old.detail == detail {
		return
	}
	if !known {
		b.keys = append(b.keys, key)
	}
	now := progressText{head: head, detail: detail, printed: old.printed}
	if b.terminal {
		b.lines[key] = now
		b.erase()
		b.draw()
		return
	}
	if old.head != head || time.Since(old.printed) > quiet {
		now.printed = time.Now()
		_, _ = fmt.Fprintf(b.out, "%s  %s\n", elapsed(time.Since(b.start)), now)
	}
	b.lines[key] = now
}

// freeze leaves the progress lines on the screen as they are and forgets them.
func (b *board) freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys, b.lines, b.drawn = nil, map[string]progressText{}, 0
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
		line := elapsed(time.Since(b.start)) + "  " + b.lines[key].String()
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
