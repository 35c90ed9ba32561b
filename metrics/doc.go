// Package metrics counts what an outbox does, for Prometheus: New gives an outbox.Observer for outbox.Config.
//
// What happens in this process is counted as it happens: effects enqueued, leases, settles, deaths, handler times. What stands in the
// database (queue depth, oldest age, parked, dead, paused) is what the janitor of this process last measured, whichever process purges; a
// scrape reads memory and never the database. Lanes and pauses are those of the janitor's scope; undelivered messages, the oldest snapshot and
// dead rows are the whole installation's. Without a janitor these series are absent. They are the same in all processes of one scope, so
// take their max and not their sum.
//
// Labels are bounded. A consumer, target or kind is shown by name when the Config lists it, and as "other" when not; tenants, keys and
// workers are no labels at all.
//
// The dashboard in docs/grafana.json and the alerts in docs/operations.md are made of these metrics.
package metrics
