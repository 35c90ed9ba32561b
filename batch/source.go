package batch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// longestLine bounds a line of a Reader. A row's payload is bounded by the box's Config.MaxPayload too.
const longestLine = 1 << 20

// space is what JSON has between its parts.
const space = " \t\r\n"

// A Source gives the rows of one Create. Rows.Reader and Rows.Channel make one. It is used once.
type Source struct {
	rows func(context.Context) iter.Seq2[inputRow, error]
}

// An inputRow is a row as it is stored: its payload, or why it is none.
type inputRow struct {
	number  int
	payload []byte
	problem error // rejected
}

// Reader reads rows as lines of JSON, an object each (NDJSON). A blank line is none. A line of more than 1 MiB is rejected as its row, and read over. A row
// is stored byte for byte, without white space around it. In memory are one line and one chunk. A Read that blocks is not interrupted.
func (r *Rows[T]) Reader(in io.Reader) Source {
	return Source{func(context.Context) iter.Seq2[inputRow, error] {
		return func(yield func(inputRow, error) bool) {
			lines := lines{in: bufio.NewReaderSize(in, 64<<10)}
			for number := 1; ; {
				line, err := lines.next()
				if err == io.EOF {
					return
				}
				row := inputRow{number: number}
				switch {
				case errors.Is(err, bufio.ErrTooLong):
					row.problem = numbered(reject(PhaseDecode, "", fmt.Sprintf("has more than %d bytes", longestLine)), number)
				case err != nil:
					yield(row, fmt.Errorf("read row %d: %w", number, err))
					return
				case len(line) == 0:
					continue
				default:
					_, row.problem = r.Check(number, line)
					row.payload = bytes.Clone(line)
				}
				if !yield(row, nil) {
					return
				}
				number++
			}
		}
	}}
}

// Channel takes rows from a channel. That it is closed says that these are all: where the other side fails, end Create's context instead.
func (r *Rows[T]) Channel(in <-chan T) Source {
	return Source{func(ctx context.Context) iter.Seq2[inputRow, error] {
		return func(yield func(inputRow, error) bool) {
			for number := 1; ; number++ {
				row := inputRow{number: number}
				select {
				case <-ctx.Done():
					yield(row, context.Cause(ctx))
					return
				case value, more := <-in:
					if !more {
						return
					}
					row.payload, row.problem = r.encode(number, value)
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}}
}

// encode gives a row that was never text its text, which a Handler can read back, and checks it.
func (r *Rows[T]) encode(number int, value T) (payload []byte, problem error) {
	err := contained(func() (err error) {
		payload, err = json.Marshal(value)
		return err
	})
	if err != nil {
		err = reject(PhaseDecode, "", "cannot be written as JSON")
	} else if _, err = decode[T](payload); err == nil {
		err = r.check(value)
	}
	if err != nil {
		return nil, numbered(err, number)
	}
	return payload, nil
}

// lines reads line by line with bounded memory.
type lines struct {
	in   *bufio.Reader
	line []byte
	read bool
}

// next gives a line without its end and the white space around it, valid until the next call. One that is too long is read over, with bufio.ErrTooLong.
func (l *lines) next() ([]byte, error) {
	l.line = l.line[:0]
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if !l.read {
			part = bytes.TrimPrefix(part, []byte("\ufeff")) // as some programs begin a file
			l.read = true
		}
		if long = long || len(l.line)+len(bytes.TrimRight(part, "\r\n")) > longestLine; !long {
			l.line = append(l.line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err != nil && (err != io.EOF || len(part) == 0 && len(l.line) == 0 && !long):
			return nil, err
		case long:
			return nil, bufio.ErrTooLong
		default:
			return bytes.Trim(l.line, space), nil
		}
	}
}
