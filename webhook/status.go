package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A StatusError is an answer that is no delivery.
type StatusError struct {
	Status int
	// Body is how the answer's began, at most 4 KiB.
	Body string
	// RetryAfter is what a 429 or 503 asked for, within PosterConfig.MaxRetryAfter; 0 for others, and if it is not to be tried again.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("answered %d %s", e.Status, http.StatusText(e.Status)))
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" (Retry-After: %v)", e.RetryAfter)
	}
	if body := strings.TrimSpace(e.Body); body != "" {
		text += ": " + body
	}
	return text
}

// Unwrap makes an answer with a RetryAfter an outbox.Snooze.
func (e *StatusError) Unwrap() error {
	if e.RetryAfter <= 0 {
		return nil
	}
	return outbox.Snooze(e.RetryAfter)
}

// statuses are the defaults that are no whole class.
var statuses = map[int]outbox.Verdict{
	http.StatusGone:            outbox.VerdictMoot,
	http.StatusTooManyRequests: outbox.VerdictFailed,
}

var classes = map[int]outbox.Verdict{2: outbox.VerdictDelivered, 4: outbox.VerdictPermanent}

func (c PosterConfig) verdict(status int) outbox.Verdict {
	class := status / 100
	for _, table := range []struct {
		verdicts map[int]outbox.Verdict
		entry    int
	}{{c.Statuses, status}, {statuses, status}, {c.Statuses, class}, {classes, class}} {
		if verdict, ok := table.verdicts[table.entry]; ok {
			return verdict
		}
	}
	return outbox.VerdictFailed
}

// marks give an error the verdict of an answer that is no delivery.
var marks = map[outbox.Verdict]func(error) error{
	outbox.VerdictFailed:      func(err error) error { return err },
	outbox.VerdictPermanent:   outbox.Permanent,
	outbox.VerdictMoot:        outbox.Moot,
	outbox.VerdictUnknown:     outbox.Unknown,
	outbox.VerdictUnavailable: outbox.Unavailable,
}

// saysWhen tells whether a Retry-After of that status is one about load, which passes without spending an attempt.
func saysWhen(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// retryAfter reads the header (RFC 9110, section 10.2.3): seconds, or a date. It is 0 for one that is missing, malformed or over.
func retryAfter(text string, now time.Time) time.Duration {
	const longest = 1 << 31 // seconds; more would overflow
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, longest)) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(date.Sub(now), 0)
}
