package sender

import "time"

// A pace is how long handlers take, which decides how many messages may wait for a slot. Waiting saves statements where handlers are short,
// and would keep messages from other senders where they are not.
type pace struct {
	lease    time.Duration
	handlers int           // that have returned
	slow     time.Duration // the longest of them, fading
}

func (p *pace) took(d time.Duration) {
	p.handlers++
	p.slow = max(d, p.slow-p.slow/16)
}

// ahead is how many messages may wait: as many as the slots get through in a thirtieth of the lease, at most a batch, none before every slot
// has proved itself.
func (p *pace) ahead(slots, batch int) int {
	if p.handlers < slots {
		return 0
	}
	turns := p.lease / 30 / max(p.slow, time.Microsecond)
	return int(min(turns*time.Duration(slots), time.Duration(batch)))
}
