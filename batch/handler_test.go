package batch_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/outbox"
)

// The function answers with an identifier or an error; it is told which row it is and cannot record what came of it.
// Shows: S4.16
func TestHandler(t *testing.T) {
	t.Parallel()
	var got batch.Row[invitation]
	busy := errors.New("busy")
	for name, test := range map[string]struct {
		key, payload string
		identifier   string
		err          error

		want      string // of the error
		permanent bool
	}{
		"processed":           {key: "import/may/12", payload: `{"email":"a"}`, identifier: "user-7"},
		"without identifier":  {key: "import/may/12", payload: `{"email":"a"}`},
		"longest identifier":  {key: "import/may/12", payload: `{"email":"a"}`, identifier: strings.Repeat("x", 4096)},
		"failed":              {key: "import/may/12", payload: `{}`, identifier: "ignored", err: busy, want: "busy"},
		"refused":             {key: "import/may/12", payload: `{}`, err: outbox.Permanent(busy), want: "busy", permanent: true},
		"too long":            {key: "import/may/12", payload: `{}`, identifier: strings.Repeat("x", 4097), want: "identifier has 4097 bytes", permanent: true},
		"NUL":                 {key: "import/may/12", payload: `{}`, identifier: "a\x00", want: "identifier has a NUL", permanent: true},
		"not UTF-8":           {key: "import/may/12", payload: `{}`, identifier: "\xff", want: "identifier is not UTF-8", permanent: true},
		"no row":              {key: "import", payload: `{}`, want: "is no row of a batch", permanent: true},
		"no number":           {key: "import/x", payload: `{}`, want: "is no row of a batch", permanent: true},
		"row zero":            {key: "import/0", payload: `{}`, want: "is no row of a batch", permanent: true},
		"no batch":            {key: "/1", payload: `{}`, want: "is no row of a batch", permanent: true},
		"no JSON":             {key: "import/may/12", payload: `{`, want: "row 12: decode: ends within the object", permanent: true},
		"an unknown field":    {key: "import/may/12", payload: `{"secret":1}`, want: "row 12: decode: secret: is no field of the row", permanent: true},
		"rules are not asked": {key: "import/may/12", payload: `{"email":"no address"}`, identifier: "user-7"},
	} {
		got = batch.Row[invitation]{}
		h := batch.Handler(invitations(t, nil), func(_ context.Context, row batch.Row[invitation]) (string, error) {
			got = row
			return test.identifier, test.err
		})
		identifier, err := h.DoResult(t.Context(), outbox.Message{ID: 5, Key: test.key, Payload: []byte(test.payload)})
		if test.want == "" {
			if err != nil || identifier != test.identifier || got.Batch != "import/may" || got.Number != 12 || got.Message.ID != 5 || got.Value.Email == "" {
				t.Errorf("%s: %.20q, %v, %+v", name, identifier, err, got)
			}
			continue
		}
		if err == nil || identifier != "" || !strings.Contains(err.Error(), test.want) || (outbox.OutcomeOf(err).Verdict() == outbox.VerdictPermanent) != test.permanent {
			t.Errorf("%s: %.20q, %v", name, identifier, err)
		}
	}
}
