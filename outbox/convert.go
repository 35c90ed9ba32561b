package outbox

import "time"

// micros is a length as the statements take it: in microseconds, rounded up, so that a short length never becomes "none".
func micros(length time.Duration) int64 {
	whole := int64(length / time.Microsecond)
	if length%time.Microsecond > 0 {
		whole++
	}
	return whole
}

// ageMicros is micros with 0 for no limit.
func ageMicros(age time.Duration) int64 {
	if age == NoMaxAge {
		return 0
	}
	return micros(age)
}

// stored is an instant as every database keeps it.
func stored(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }
