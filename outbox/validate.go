package outbox

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
)

const longestAge = 36525 * 24 * time.Hour // 100 years

// on reports the problems of one field.
func (p *problems) on(field string) bounds.Report {
	return func(problem string) { p.add(field, problem) }
}

// name refuses what cannot name a consumer, target, kind or worker.
func (p *problems) name(field, value string, limit int) { bounds.CheckName(value, limit, p.on(field)) }

// optionalName is name for a tenant, which may be empty.
func (p *problems) optionalName(field, value string, limit int) {
	bounds.CheckOptionalName(value, limit, p.on(field))
}

// required refuses a blank text.
func (p *problems) required(field, value string, limit int) {
	bounds.CheckRequired(value, limit, p.on(field))
}

// optional refuses a text of nothing but white space.
func (p *problems) optional(field, value string, limit int) {
	bounds.CheckOptional(value, limit, p.on(field))
}

// text refuses what a database cannot store or an index cannot hold.
func (p *problems) text(field, value string, limit int) { bounds.CheckText(value, limit, p.on(field)) }

func (p *problems) kinds(kinds []string) {
	for _, kind := range kinds {
		p.name("Kinds", kind, maxName)
	}
}

// age refuses what is neither zero, NoMaxAge, nor a positive length.
func (p *problems) age(field string, age time.Duration) {
	if age < 0 {
		p.addf(field, "is negative: %v", age)
	} else if age > longestAge && age != NoMaxAge {
		p.addf(field, "is longer than 100 years; NoMaxAge is none")
	}
}

func (p *problems) consumer(c *Consumer) {
	if c == nil {
		p.add("Consumer", "is nil")
	}
}

// lease turns the length of a lease into microseconds.
func (p *problems) lease(field string, length time.Duration) int64 {
	if length > db.LongestLease {
		p.addf(field, "is %v, at most %v are allowed", length, db.LongestLease)
	}
	return micros(max(length, time.Millisecond))
}

// held refuses a message that no lease gave out: its token is that of every free row.
func (p *problems) held(m Message) {
	if !m.leased() {
		p.add("Message", "does not come from a lease")
	}
}
