package sqlitedb

import (
	"errors"
	"fmt"
	"time"
)

// Synchronous says what has reached the disk when a commit returns.
type Synchronous int

const (
	// Full: the commit itself, so that it survives a loss of power. The default, and what the promise of the outbox needs.
	Full Synchronous = iota
	// Normal: the commit survives the end of the process, but the last ones may be undone, as a whole and in order, by a loss of power or a crash of
	// the operating system: an effect performed just before may be performed again, one that was acknowledged to a caller may be gone with its change.
	// Several times as many commits a second.
	Normal
)

// Config sets up a Store. The zero value is the careful choice.
type Config struct {
	// Synchronous is Full unless Normal will do.
	Synchronous Synchronous
	// BusyTimeout is how long a statement waits for the write lock of another process, and one second at least; 0 means 10 seconds. What waits
	// longer fails with db.ErrRetry, a transaction of the store's own after five such waits.
	BusyTimeout time.Duration
	// Readers bounds the connections that read, beside the one that writes; 0 means 4. Open alone uses it.
	Readers int
	// MustExist refuses to create the file. Open alone uses it.
	MustExist bool
}

const (
	defaultBusyTimeout  = 10 * time.Second
	shortestBusyTimeout = time.Second
	defaultReaders      = 4
)

// complete returns the config with its defaults, or every problem it has.
func (c Config) complete() (Config, error) {
	var problems []error
	if c.Synchronous != Full && c.Synchronous != Normal {
		problems = append(problems, fmt.Errorf("Config.Synchronous: %d is neither Full nor Normal", c.Synchronous))
	}
	if c.BusyTimeout == 0 {
		c.BusyTimeout = defaultBusyTimeout
	}
	if c.BusyTimeout < shortestBusyTimeout || c.BusyTimeout > time.Hour {
		problems = append(problems, fmt.Errorf("Config.BusyTimeout: %v is not between 1s and 1h", c.BusyTimeout))
	}
	if c.Readers == 0 {
		c.Readers = defaultReaders
	}
	if c.Readers < 1 || c.Readers > 1000 {
		problems = append(problems, fmt.Errorf("Config.Readers: %d is not between 1 and 1000", c.Readers))
	}
	if len(problems) > 0 {
		return c, fmt.Errorf("sqlitedb: %w", errors.Join(problems...))
	}
	return c, nil
}
