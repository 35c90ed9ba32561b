package outbox

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/db"
)

const longestAge = 36525 * 24 * time.Hour // 100 years

// name refuses what cannot name a consumer, target, kind or worker.
func (p *problems) name(field, value string, limit int) {
	p.notAny(field, value)
	p.required(field, value, limit)
}

// optionalName is name for a tenant, which may be empty.
func (p *problems) optionalName(field, value string, limit int) {
	p.notAny(field, value)
	p.optional(field, value, limit)
}

func (p *problems) notAny(field, value string) {
	if value == Any {
		p.add(field, "is the wildcard *, which no name may be")
	}
}

// required refuses a blank text.
func (p *problems) required(field, value string, limit int) {
	if value == "" {
		p.add(field, "is blank")
		return
	}
	p.optional(field, value, limit)
}

// optional refuses a text of nothing but white space. It is trimmed only to test it.
func (p *problems) optional(field, value string, limit int) {
	if value != "" && strings.TrimSpace(value) == "" {
		p.add(field, "is blank")
	}
	p.text(field, value, limit)
}

// text refuses what a database cannot store or an index cannot hold.
func (p *problems) text(field, value string, limit int) {
	if len(value) > limit {
		p.addf(field, "has %d bytes, at most %d are allowed", len(value), limit)
		return
	}
	if at := strings.IndexByte(value, 0); at >= 0 {
		p.addf(field, "has a NUL at byte %d", at)
	}
	if at := invalidUTF8(value); at >= 0 {
		p.addf(field, "is not UTF-8 at byte %d", at)
	}
}

func (p *problems) kinds(kinds []string) {
	for _, kind := range kinds {
		p.name("Kinds", kind, maxName)
	}
}

// invalidUTF8 is the place of the first byte that is not UTF-8, or -1.
func invalidUTF8(value string) int {
	if utf8.ValidString(value) {
		return -1
	}
	for at := 0; at < len(value); {
		r, size := utf8.DecodeRuneInString(value[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
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
