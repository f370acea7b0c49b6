package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"

	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

// Run runs a devstack until ctx ends or, with ExitWhenReady, until the samples
// are Ready. It leaves no process and no port behind. self is how the user
// calls this program.
func Run(ctx context.Context, opts Options, out io.Writer, self string) (err error) {
	if err := opts.Complete(); err != nil {
		return err
	}
	dir, leave, err := openDataDir(opts.DataDir)
	if err != nil {
		return err
	}
	defer leave()
	log, componentLog, closeLog, err := openLog(filepath.Join(dir, "logs"))
	if err != nil {
		return err
	}
	defer closeLog()

	screen := newBoard(out)
	s := newStack(opts, dir, screen, log)
	s.componentLog = componentLog
	defer func() {
		screen.freeze()
		screen.stamp("stopping")
		s.stop()
		screen.stamp("stopped: no process and no port is left")
	}()
	startCtx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	if err := s.start(startCtx); err != nil {
		return fmt.Errorf("the devstack did not start: %w", s.keepLogs(err))
	}
	if err := s.publish(); err != nil {
		return err
	}
	screen.stamp("devstack is up\n%s", s.welcome(self, opts.DataDir == ""))
	if err := s.samples(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C while the samples were on their way
		}
		if opts.ExitWhenReady {
			return s.keepLogs(err)
		}
		screen.stamp("%v", err)
	}
	if opts.ExitWhenReady {
		return nil
	}
	screen.stamp("Ctrl-C stops the devstack")
	<-ctx.Done()
	return nil
}

// samples applies the samples and follows them until they are Ready.
func (s *Stack) samples(ctx context.Context) error {
	if s.opts.NoSamples {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, fmt.Errorf("--timeout %s is over", s.opts.Timeout))
	defer cancel()
	began := time.Now()
	objects, err := s.applier.applyFolder(ctx, s.opts.Samples)
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	s.screen.stamp("applied %d objects of %s", len(objects), s.opts.Samples)
	if s.opts.ExitWhenReady {
		go func() {
			// Nobody is there to start a part again.
			select {
			case <-s.broken:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if err := follow(ctx, s.applier, followed(objects), s.screen); err != nil {
		return fmt.Errorf("samples: %w: %w", context.Cause(ctx), err)
	}
	s.screen.stamp("the samples are Ready, %.1f s after they were applied", time.Since(began).Seconds())
	return nil
}

// keepLogs copies the logs of a stack whose folder is removed to where a person
// can read them, and says so.
func (s *Stack) keepLogs(err error) error {
	if s.opts.DataDir != "" || errors.Is(err, context.Canceled) {
		return err
	}
	kept, kerr := os.MkdirTemp("", "devstack-logs-")
	if kerr == nil {
		kerr = os.CopyFS(kept, os.DirFS(s.state.Logs))
	}
	if kerr != nil {
		return errors.Join(err, fmt.Errorf("the logs could not be kept: %w", kerr))
	}
	return fmt.Errorf("%w\nlogs are kept in %s", err, kept)
}

// openLog sends the logs of all that runs in this process to logs/devstack.log,
// also what libraries write to standard error: the screen is for people. A
// crash of this process is still told there.
func openLog(dir string) (log *slog.Logger, components logr.Logger, restore func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, components, nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "devstack.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, components, nil, err
	}
	unredirect, err := redirectStderr(f)
	if err != nil {
		return nil, components, nil, errors.Join(err, f.Close())
	}
	components = kube.LogTo(f)
	log = slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: slog.LevelInfo}))
	slog.SetDefault(log)
	return log, components, func() { unredirect(); _ = f.Close() }, nil
}
