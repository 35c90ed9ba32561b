package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// From where on it is worth a warning that a reader is behind. What keeps events from being read is a transaction left open, as an old snapshot is.
const readerWarning = time.Hour

// A stream is how far the events can be read, and were.
type stream struct {
	db.ReadHorizonRow
	readers []db.ListReadersRow
}

func readStream(ctx context.Context, store db.Store) (stream, error) {
	rows, err := store.ReadHorizon(ctx)
	if err == nil && len(rows) == 0 {
		err = errors.New("the stream of events has lost its one row of incarnation: nothing can be appended or read")
	}
	if err != nil {
		return stream{}, err
	}
	s := stream{ReadHorizonRow: rows[0]}
	for after := ""; ; {
		readers, err := store.ListReaders(ctx, db.ListReadersParams{AfterName: after, MaxRows: pageSize})
		if err != nil {
			return stream{}, err
		}
		s.readers = append(s.readers, readers...)
		if len(readers) < pageSize {
			return s, nil
		}
		after = readers[len(readers)-1].Name
	}
}

func (s stream) unread() time.Duration { return time.Duration(s.Unread) * time.Microsecond }

// says tells how far the stream can be read, and with which level.
func (s stream) says() (level, string) {
	newest := fmt.Sprint("the newest is at position ", s.Newest)
	switch {
	case s.Restored:
		return levelWarning, newest + "; they were restored from a dump: the first append or read makes the stream this server's own, and cursors from before are unknown then"
	case s.Newest == 0:
		return levelOK, "none was ever appended"
	case s.Unread > 0:
		return levelOf(s.unread(), snapshotWarning, snapshotCritical),
			fmt.Sprintf("%s, and the oldest that nobody can read yet is %s old: a transaction that wrote before it is still open", newest, age(s.unread()))
	}
	return levelOK, newest + ", and all can be read"
}

// readerStands tells how a reader stands in a word, and with which level.
func readerStands(r db.ListReadersRow) (level, string) {
	switch {
	case r.Standing == db.StandingExpired:
		return levelCritical, "expired"
	case r.Standing != db.StandingGood:
		return levelCritical, "unknown"
	case r.Behind > 0:
		behind := time.Duration(r.Behind) * time.Microsecond
		return levelOf(behind, readerWarning, 1<<62), age(behind)
	}
	return levelOK, "-"
}

type streamStatus struct {
	Level         level          `json:"level"`
	Newest        string         `json:"newest"` // position; 0 when none was ever appended
	UnreadSeconds float64        `json:"unread_seconds"`
	Restored      bool           `json:"restored"`
	Readers       []readerStatus `json:"readers"`

	says string
}

type readerStatus struct {
	Level         level     `json:"level"`
	Name          string    `json:"name"`
	Position      string    `json:"position"`
	Standing      string    `json:"standing"` // good, unknown or expired
	BehindSeconds float64   `json:"behind_seconds"`
	SavedAt       time.Time `json:"saved_at"`

	stands string
}

func newStreamStatus(s stream) streamStatus {
	r := streamStatus{
		Newest: strconv.FormatInt(s.Newest, 10), UnreadSeconds: s.unread().Seconds(), Restored: s.Restored, Readers: []readerStatus{},
	}
	r.Level, r.says = s.says()
	for _, reader := range s.readers {
		status := readerStatus{
			Name: reader.Name, Position: strconv.FormatInt(reader.Position, 10), Standing: "good",
			BehindSeconds: (time.Duration(reader.Behind) * time.Microsecond).Seconds(), SavedAt: reader.SavedAt.UTC(),
		}
		if status.Level, status.stands = readerStands(reader); reader.Standing != db.StandingGood {
			status.Standing = status.stands
		}
		r.Readers = append(r.Readers, status)
	}
	return r
}

// text adds nothing for who has no events.
func (r streamStatus) text(p *page) {
	if r.Newest != "0" || r.Restored {
		p.levelLinef(r.Level, "events: %s", r.says)
	}
	for _, reader := range r.Readers {
		stands := " has read all"
		switch {
		case reader.Standing != "good":
			stands = ": its place is " + reader.stands + ", and it has to begin anew"
		case reader.BehindSeconds > 0:
			stands = " is behind by " + reader.stands
		}
		p.levelLinef(reader.Level, "reader %s at position %s%s", reader.Name, reader.Position, stands)
	}
}
