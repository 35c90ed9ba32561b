package outbox

import (
	"math"
	"time"
)

const (
	// NoMaxAge as Policy.MaxAge or Effect.MaxAge means no limit.
	NoMaxAge time.Duration = math.MaxInt64
	// NoJitter as Policy.Jitter means none.
	NoJitter = math.MaxInt
)

// A Policy says how often and how long the messages of one consumer are tried. Zero fields take the box's (Config.Policy), whose zero
// fields take the defaults; negative ones are refused.
type Policy struct {
	// MaxAttempts is the number of leases a message gets. Default 12, at most 10,000.
	MaxAttempts int
	// InitialDelay is the delay after the first failed attempt; it doubles with each further one. Default 30 s.
	InitialDelay time.Duration
	// MaxDelay caps every delay, the first one too. Default 15 minutes.
	MaxDelay time.Duration
	// Jitter is the percentage by which a delay is shortened at most, always the same for the same message and attempt. Default 20, at
	// most 100; NoJitter for none.
	Jitter int
	// Backoff replaces the doubling: it is given the number of the retry, from one. Its answer is still capped by MaxDelay and jittered. If
	// it panics, ends its goroutine or answers with less than a nanosecond, the doubling serves instead and the first time is logged.
	Backoff func(retry int) time.Duration
	// MaxAge is how old a message may be when it is leased or retried; a message that is older is dead. It can only shorten the age its
	// producer gave it. Default 24 hours, at most 100 years; NoMaxAge for none.
	MaxAge time.Duration
	// MaxSnooze allows handlers to answer with Snooze and caps it. Default 0: a snooze is a failed attempt.
	MaxSnooze time.Duration

	// AcceptLate records a delivery although its lease is over, as long as nobody else has leased the message since.
	AcceptLate bool
	// BlockOnDead keeps an order key blocked by a dead message until that is replayed or purged, or the key is unblocked. By default the
	// next message of the key goes on.
	BlockOnDead bool
	// DropDelivered removes messages at their delivery: nothing of them is kept, their keys are free again, and Result.Recorded is never true.
	DropDelivered bool
}

var defaultPolicy = Policy{
	MaxAttempts:  12,
	InitialDelay: 30 * time.Second,
	MaxDelay:     15 * time.Minute,
	Jitter:       20,
	MaxAge:       24 * time.Hour,
}

// or fills the zero fields of p from q.
func (p Policy) or(q Policy) Policy {
	p.MaxAttempts = first(p.MaxAttempts, q.MaxAttempts)
	p.InitialDelay = first(p.InitialDelay, q.InitialDelay)
	p.MaxDelay = first(p.MaxDelay, q.MaxDelay)
	p.Jitter = first(p.Jitter, q.Jitter)
	p.MaxAge = first(p.MaxAge, q.MaxAge)
	p.MaxSnooze = first(p.MaxSnooze, q.MaxSnooze)
	if p.Backoff == nil {
		p.Backoff = q.Backoff
	}
	p.AcceptLate = p.AcceptLate || q.AcceptLate
	p.BlockOnDead = p.BlockOnDead || q.BlockOnDead
	p.DropDelivered = p.DropDelivered || q.DropDelivered
	return p
}

func first[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

// check looks at a policy whose zero fields are filled.
func (p Policy) check(found *problems) {
	if p.MaxAttempts < 1 || p.MaxAttempts > maxAttempts {
		found.addf("MaxAttempts", "is %d, not between 1 and %d", p.MaxAttempts, maxAttempts)
	}
	if p.InitialDelay < 0 {
		found.addf("InitialDelay", "is negative: %v", p.InitialDelay)
	}
	if p.MaxDelay < 0 {
		found.addf("MaxDelay", "is negative: %v", p.MaxDelay)
	}
	if p.Jitter != NoJitter && (p.Jitter < 0 || p.Jitter > 100) {
		found.addf("Jitter", "is %d, not between 1 and 100 percent; NoJitter is none", p.Jitter)
	}
	found.age("MaxAge", p.MaxAge)
	if p.MaxSnooze < 0 {
		found.addf("MaxSnooze", "is negative: %v", p.MaxSnooze)
	}
}
