package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"gopkg.in/natefinch/lumberjack.v2"
)

// Options say where records go.
type Options struct {
	// Path of the file; Stdout, or empty for no audit.
	Path string
	// MaxSizeMB is the size at which the file is rotated.
	MaxSizeMB int
	// MaxBackups is the number of rotated files to keep; 0 keeps all.
	MaxBackups int
}

// Stdout is the Path of the standard output.
const Stdout = "-"

// AddTo registers the flags.
func (o *Options) AddTo(fs *pflag.FlagSet) {
	fs.StringVar(&o.Path, "audit-log", Stdout, `file for the audit records, one JSON object a line; "-" is the standard output, "" is no audit. Each process needs a file of its own`)
	fs.IntVar(&o.MaxSizeMB, "audit-log-max-size", 100, "megabytes at which the audit file is rotated")
	fs.IntVar(&o.MaxBackups, "audit-log-max-backups", 10, "rotated audit files to keep, 0 keeps all")
}

// Validate refuses what cannot work.
func (o *Options) Validate() error {
	var errs []error
	if o.MaxSizeMB < 1 {
		errs = append(errs, fmt.Errorf("--audit-log-max-size is %d, want 1 or more", o.MaxSizeMB))
	}
	if o.MaxBackups < 0 {
		errs = append(errs, fmt.Errorf("--audit-log-max-backups is %d, want 0 or more", o.MaxBackups))
	}
	return errors.Join(errs...)
}

// Log writes records, one line each. It is safe for concurrent use.
type Log struct {
	where  string
	worker string
	now    func() time.Time

	mu   sync.Mutex
	out  io.Writer
	torn bool // the last write ended in the middle of a line
	done func() error
}

// Open opens the log and writes its first record: a worker that cannot write
// must not start. It returns nil, without error, when there is no audit.
func Open(o Options, worker string) (*Log, error) {
	switch o.Path {
	case "":
		return nil, nil
	case Stdout:
		return newLog(os.Stdout, "standard output", worker, nil)
	}
	if err := regular(o.Path); err != nil {
		return nil, fmt.Errorf("--audit-log: %w", err)
	}
	file := &lumberjack.Logger{Filename: o.Path, MaxSize: o.MaxSizeMB, MaxBackups: o.MaxBackups}
	return newLog(file, o.Path, worker, file.Close)
}

// regular makes the file, or proves that it can be appended to. The library
// would move whatever it cannot open out of the way, be it a folder.
func regular(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the operator's own flag
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; %q is the standard output", path, Stdout)
	}
	return errors.Join(err, file.Close())
}

func newLog(out io.Writer, where, worker string, done func() error) (*Log, error) {
	l := &Log{out: out, where: where, worker: worker, now: time.Now, done: done}
	if err := l.write(Record{Stage: StageStart}); err != nil {
		return nil, fmt.Errorf("%w: the audit is on (--audit-log), so nothing is done without it", err)
	}
	return l, nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil || l.done == nil {
		return nil
	}
	return l.done()
}

// write completes the record and writes it as one line in one call.
func (l *Log) write(r Record) error {
	r.Time, r.Worker = l.now().UTC(), l.worker
	line, err := marshal(r)
	if err != nil {
		return fmt.Errorf("audit record: %w", err)
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		// A full disk takes a part of a line. The next one must not be glued to it.
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.out.Write(line)
	l.torn = err != nil && (n > 0 || l.torn)
	if err != nil {
		return fmt.Errorf("audit log %s cannot be written: %w", l.where, err)
	}
	return nil
}

func marshal(v any) ([]byte, error) { return json.Marshal(v) }
