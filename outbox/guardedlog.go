package outbox

import (
	"context"
	"log/slog"
)

// guardedLog is the application's slog.Handler, whose panic or Goexit must not end what logs.
type guardedLog struct {
	slog.Handler
	observer *Observer
}

func (g guardedLog) Enabled(ctx context.Context, level slog.Level) bool {
	return guard(g, func() bool { return g.Handler.Enabled(ctx, level) })
}

func (g guardedLog) Handle(ctx context.Context, record slog.Record) error {
	return guard(g, func() error { return g.Handler.Handle(ctx, record) })
}

func guard[T any](g guardedLog, call func() T) T {
	value, problem := contain(call)
	if problem != nil {
		g.observer.Contained("Config.Logger", problem)
	}
	return value
}

func (g guardedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	g.Handler = g.Handler.WithAttrs(attrs)
	return g
}

func (g guardedLog) WithGroup(name string) slog.Handler {
	g.Handler = g.Handler.WithGroup(name)
	return g
}
