package batch

import (
	"context"
	"iter"
)

// An InputRow is an inputRow for the tests.
type InputRow struct {
	Number  int
	Payload []byte
	Problem error
}

// RowsOf gives the rows of a source.
func RowsOf(ctx context.Context, s Source) iter.Seq2[InputRow, error] {
	return func(yield func(InputRow, error) bool) {
		for row, err := range s.rows(ctx) {
			if !yield(InputRow{row.number, row.payload, row.problem}, err) {
				return
			}
		}
	}
}
