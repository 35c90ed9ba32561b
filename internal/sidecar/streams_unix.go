//go:build unix

package sidecar

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// flush is how long outputs are read on when the group has been killed: only a process that left it can hold them open.
const flush = 250 * time.Millisecond

// streams are the standard streams of a command.
type streams struct {
	theirs         [3]*os.File
	input          *os.File
	output, errors output
	copying        sync.WaitGroup
	quiet          chan struct{} // closed when nobody holds an output any more
}

// An output is what a command writes to. Without ours it is discarded.
type output struct {
	ours *os.File
	tail
}

func openStreams(keepOutput bool) (*streams, error) {
	s := &streams{quiet: make(chan struct{})}
	var problems [3]error
	s.theirs[0], s.input, problems[0] = os.Pipe()
	if keepOutput {
		s.output.ours, s.theirs[1], problems[1] = os.Pipe()
	} else {
		s.theirs[1], problems[1] = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	s.errors.ours, s.theirs[2], problems[2] = os.Pipe()
	if err := errors.Join(problems[:]...); err != nil {
		closeAll(s.theirs[:]...)
		s.close()
		return nil, err
	}
	return s, nil
}

// converse begins to write the payload and to read what comes. A command need not read: what it leaves is dropped when it has ended.
func (s *streams) converse(payload []byte) {
	s.copying.Go(func() {
		_, _ = s.input.Write(payload)
		s.input.Close()
	})
	var reading sync.WaitGroup
	for _, o := range []*output{&s.output, &s.errors} {
		if o.ours != nil {
			reading.Go(func() { _, _ = io.Copy(&o.tail, o.ours) })
		}
	}
	s.copying.Go(func() {
		reading.Wait()
		close(s.quiet)
	})
}

// drain takes in what is still to be read of a group that is gone.
func (s *streams) drain() {
	s.input.Close()
	for _, o := range []*output{&s.output, &s.errors} {
		_ = o.ours.SetReadDeadline(time.Now().Add(flush)) // of a nil file an error too
	}
	s.copying.Wait()
	s.close()
}

func (s *streams) close() { closeAll(s.input, s.output.ours, s.errors.ours) }

func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close() // nil files too
	}
}
