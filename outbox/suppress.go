package outbox

import "context"

type suppressedKey struct{}

// WithSuppressed gives a context under which Enqueue validates its effects but records nothing and answers Suppressed: for repairs and
// replays of the application's own code that must not act on the world again.
func WithSuppressed(ctx context.Context) context.Context {
	return context.WithValue(ctx, suppressedKey{}, true)
}

// IsSuppressed says whether a context comes from WithSuppressed.
func IsSuppressed(ctx context.Context) bool { return ctx.Value(suppressedKey{}) != nil }
