package devserver

import (
	"context"
	"fmt"
	"log/slog"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// serverLogger sends the server's log to slog. DPanic, Panic and Fatal are
// errors here: a development server lives on as long as it can. But for one: the
// server goes on with no socket, and crashes, where Fatal returns after a port
// could not be opened.
type serverLogger struct{ to *slog.Logger }

var _ log.Logger = serverLogger{}

func (l serverLogger) log(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if !l.to.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, len(tags))
	for i, t := range tags {
		attrs[i] = slog.Any(t.Key(), t.Value())
	}
	l.to.LogAttrs(ctx, level, msg, attrs...)
}

func (l serverLogger) Debug(msg string, tags ...tag.Tag)  { l.log(slog.LevelDebug, msg, tags) }
func (l serverLogger) Info(msg string, tags ...tag.Tag)   { l.log(slog.LevelInfo, msg, tags) }
func (l serverLogger) Warn(msg string, tags ...tag.Tag)   { l.log(slog.LevelWarn, msg, tags) }
func (l serverLogger) Error(msg string, tags ...tag.Tag)  { l.log(slog.LevelError, msg, tags) }
func (l serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }
func (l serverLogger) Panic(msg string, tags ...tag.Tag)  { l.log(slog.LevelError, msg, tags) }
func (l serverLogger) Fatal(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	if msg != noListener {
		return
	}
	sentence := msg
	for _, t := range tags {
		sentence += fmt.Sprintf(", %s: %v", t.Key(), t.Value())
	}
	panic(portTaken(sentence))
}

// noListener is what the server says when a port cannot be opened:
// https://github.com/temporalio/temporal/blob/v1.32.1/common/rpc/rpc.go#L196.
const noListener = "Failed to start gRPC listener"

// portTaken is the panic for that; newServer catches it.
type portTaken string
