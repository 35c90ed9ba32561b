package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
)

// A line is one of the input, or the error that ended it.
type line struct {
	text []byte
	err  error
}

// readLines reads on a goroutine of its own, since nothing interrupts a read from a terminal or a pipe. The channel is closed at the end.
func readLines(ctx context.Context, in io.Reader, longest int) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		send := func(l line) bool {
			select {
			case lines <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, longest)
		for scanner.Scan() {
			if !send(line{text: bytes.Clone(scanner.Bytes())}) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			send(line{err: err})
		}
	}()
	return lines
}
