package sqlitedb

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"time"
)

// never and forever stand for an instant that has not come and for one that never will.
const (
	never   = -62135596800000000
	forever = 253402214400000000
)

// micros is an instant as the tables hold it, and instant is the way back.
func micros(t time.Time) int64 { return t.UnixMicro() }

func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// after is the instant so many microseconds later, or the last there is, which no CHECK lets through.
func after(at, micros int64) int64 {
	if sum := at + micros; micros < 0 || sum >= at {
		return sum
	}
	return math.MaxInt64
}

// list is the JSON array by which a list travels into a statement. JSON would change text that is not UTF-8; package outbox lets none through.
func list[T any](values []T) string {
	if len(values) == 0 {
		return "[]"
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // only numbers, texts and flat structs of them are given
	}
	return string(text)
}

// hexed is bytes in a list.
func hexed(b []byte) string { return hex.EncodeToString(b) }

// convert maps rows one by one.
func convert[From, To any](rows []From, err error, to func(From) To) ([]To, error) {
	out := make([]To, len(rows))
	for i, row := range rows {
		out[i] = to(row)
	}
	return out, err
}
