package badinput

import (
	"math"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// boundLeases is how leases and limits are bounded: B9, B11.
// Shows: S1.16
func boundLeases(f *fixture) {
	request := func(limit int, length time.Duration, kinds ...string) outbox.LeaseRequest {
		return outbox.LeaseRequest{Kinds: kinds, Limit: limit, For: length}
	}
	f.enqueue(valid("k"))
	for _, length := range []time.Duration{db.LongestLease + 1, math.MaxInt64} {
		f.silently("B9 long lease", func() {
			_, err := f.box.Lease(f.Context(), f.consumer, request(1, length, "charge"))
			f.refused("B9 long lease", err, "For")
		})
	}
	for _, limit := range []int{0, -1, math.MinInt} {
		f.silently("B11 limit", func() {
			if messages, err := f.box.Lease(f.Context(), f.consumer, request(limit, time.Minute, "charge")); err != nil || len(messages) != 0 {
				f.Errorf("B11 limit %d: %v, %v", limit, messages, err)
			}
			page, err := f.box.List(f.Context(), outbox.AllTenants, outbox.ListQuery{Limit: limit})
			if err != nil || len(page.Messages) != 0 {
				f.Errorf("B11 limit %d: %v, %v", limit, page, err)
			}
		})
	}
	f.silently("B11 no kinds", func() {
		if messages, err := f.box.Lease(f.Context(), f.consumer, request(1, time.Minute)); err != nil || len(messages) != 0 {
			f.Errorf("B11 no kinds: %v, %v", messages, err)
		}
	})
	for _, length := range []time.Duration{math.MinInt64, -1, 0, 1, time.Microsecond} {
		messages, err := f.box.Lease(f.Context(), f.consumer, request(math.MaxInt, length, "charge"))
		if err != nil || len(messages) != 1 {
			f.Fatalf("B9 lease of %v: %v, %v", length, messages, err)
		}
		f.Age(time.Second) // over, whatever it was
	}
	messages := f.lease()
	if len(messages) != 1 {
		f.Fatalf("leased %v", messages)
	}
	if renewals, err := f.box.Renew(f.Context(), messages, -1); err != nil || renewals[0].Err != nil {
		f.Errorf("B9 renewal of -1: %v, %v", renewals, err)
	}
	f.silently("B9 long renewal", func() {
		_, err := f.box.Renew(f.Context(), messages, db.LongestLease+1)
		f.refused("B9 long renewal", err, "length")
	})
	f.silently("B9 made by hand", func() {
		_, err := f.box.Renew(f.Context(), []outbox.Message{{ID: messages[0].ID}}, time.Minute)
		f.refused("B9 made by hand", err, "Message")
	})
}
