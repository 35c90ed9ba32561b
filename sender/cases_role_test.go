package sender

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

func changed(r *rig, change func(*url.URL)) string {
	r.Helper()
	u, err := url.Parse(r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	change(u)
	return u.String()
}

// A producer and a sender need no more than the rights that schema.Grants gives them, not even to start; every other role is refused.
func TestC67EachUnderItsRole(t *testing.T) {
	onDrivers(t, func(r *rig, use driver) {
		as := pgtest.Roles(r, r.dsn)
		producer := r.process(use, setup{dsn: as("producer")})
		if err := producer.box.CheckSchema(r.Context()); err != nil {
			r.Error(err)
		}
		producer.enqueue(effect("delivered"), effect("dead"), effect("unknown"))
		required := Config{RequireRole: true, Handlers: doing(func(_ context.Context, m outbox.Message) error {
			switch m.Key {
			case "dead":
				return outbox.Permanent(errors.New("no such wallet"))
			case "unknown":
				return outbox.Unknown(errors.New("no answer"))
			}
			return nil
		})}
		for role, want := range map[string]string{
			"migrator": "owns the tables",
			"producer": "may not lease messages, may not settle messages",
			"operator": "may not lease messages, may not settle messages",
			"janitor":  "may not lease messages, may not settle messages",
			"viewer":   "may not lease messages, may not settle messages",
			"repair":   "permission denied for schema outbox",
		} {
			if _, err := r.process(use, setup{dsn: as(role)}).sender(required).RunOnce(r.Context()); err == nil || !strings.Contains(err.Error(), want) {
				r.Errorf("a sender as %s: %v, want %q", role, err, want)
			}
		}
		// What nobody gets right by waiting ends Run as well, and is no outage.
		for dsn, want := range map[string]string{
			as("repair"): "permission denied for schema outbox",
			changed(r, func(u *url.URL) { u.User = url.User("nobody") }): `role "nobody" does not exist`,
			changed(r, func(u *url.URL) { u.Path = "nowhere" }):          `database "nowhere" does not exist`,
		} {
			p := r.process(use, setup{dsn: dsn})
			if err := p.sender(required).Run(r.Context()); !errors.Is(err, db.ErrDenied) || !strings.Contains(err.Error(), want) || len(p.log.lines("")) > 0 {
				r.Errorf("a sender with %q: %v, logged %v", want, err, p.log.lines(""))
			}
		}
		p := r.process(use, setup{dsn: as("sender")})
		counts := p.runOnce(p.sender(required))
		if counts.Delivered != 1 || counts.Dead != 1 || counts.Parked != 1 {
			r.Errorf("counted %+v", counts)
		}
		if _, err := p.tryEnqueue([]outbox.Effect{effect("another")}); err == nil || !strings.Contains(err.Error(), "permission denied for ") {
			r.Errorf("a sender enqueues: %v", err)
		}
	})
}
