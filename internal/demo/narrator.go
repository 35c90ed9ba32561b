package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A narrator tells what happens, each line with the time since the start.
type narrator struct {
	out   io.Writer
	live  bool // a terminal, whose last line can be written again
	start time.Time
	shown int // tenths of the work that were told elsewhere
}

func newNarrator(out io.Writer, live bool, start time.Time) *narrator {
	return &narrator{out: out, live: live, start: start}
}

func (n *narrator) sayf(format string, args ...any) {
	n.clear()
	fmt.Fprintf(n.out, "%6.1fs  %s\n", time.Since(n.start).Seconds(), fmt.Sprintf(format, args...))
}

// clear removes the line that counts.
func (n *narrator) clear() {
	if n.live {
		fmt.Fprint(n.out, "\r\x1b[K")
	}
}

// count tells how far the work is: on a terminal as a bar that is written again, elsewhere at each tenth.
func (n *narrator) count(done, total int) {
	const width = 30
	if n.live {
		filled := width * done / total
		n.clear()
		fmt.Fprintf(n.out, "%6.1fs  [%s%s] %d of %d performed", time.Since(n.start).Seconds(),
			strings.Repeat("#", filled), strings.Repeat(".", width-filled), done, total)
		return
	}
	if tenths := 10 * done / total; tenths > n.shown {
		n.shown = tenths
		n.sayf("%d of %d performed", done, total)
	}
}
