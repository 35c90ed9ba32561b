package fencepost_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

type Invitation struct {
	Email string `json:"email" validate:"required,email"`
	Seats int    `json:"seats" validate:"min=1,max=100"`
	Team  string `json:"team"`
}

func invitationRows(known func(team string) bool) (*batch.Rows[Invitation], error) {
	return batch.NewRows(batch.RowsConfig[Invitation]{
		Fields: map[string]func(Invitation) error{
			"team": func(i Invitation) error {
				if i.Team != "" && !known(i.Team) {
					return errors.New("is no team of ours")
				}
				return nil
			},
		},
		Cross: func(i Invitation) error {
			if i.Team == "" && i.Seats > 1 {
				return errors.New("more than one seat needs a team")
			}
			return nil
		},
	})
}

func inviteAll(ctx context.Context, b *batch.Batches, rows *batch.Rows[Invitation], file io.Reader) (batch.Receipt, error) {
	return b.Create(ctx, batch.Spec{
		Consumer: "invites", Target: "mail", Kind: "invite", Key: "spring-campaign",
		OnComplete: &outbox.Effect{Consumer: "reports", Target: "mail", Kind: "report", Key: "spring-campaign"},
	}, rows.Reader(file))
}

func sendInvitations(ctx context.Context, box *outbox.Box, rows *batch.Rows[Invitation], send func(key, email string) (id string, err error)) error {
	invites, err := box.Consumer("invites", "mail", outbox.Policy{})
	if err != nil {
		return err
	}
	s, err := sender.New(box, invites, sender.Config{Handlers: sender.Handlers{
		"invite": batch.Handler(rows, func(ctx context.Context, row batch.Row[Invitation]) (string, error) {
			return send(row.Message.Key, row.Value.Email)
		}),
	}})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func waitFor(ctx context.Context, b *batch.Batches, id int64, tell func(ended, total int)) (batch.Progress, error) {
	var last batch.Progress
	for p, err := range b.Watch(ctx, outbox.Scope{}, id, time.Second) {
		if err != nil {
			return last, err // or go on: after an outage Watch does
		}
		last = p
		tell(p.Total-p.Open, p.Total)
	}
	return last, nil
}

func progressPage(b *batch.Batches, mayRead func(*http.Request) (outbox.Scope, error)) (*batch.ProgressHandler, error) {
	return batch.NewProgressHandler(b, func(r *http.Request) (outbox.Scope, int64, error) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			return outbox.Scope{}, 0, err
		}
		scope, err := mayRead(r)
		return scope, id, err
	}, batch.ProgressConfig{})
}

func TestBatchSnippetsWork(t *testing.T) {
	t.Parallel()
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := batch.New(box, batch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := invitationRows(func(team string) bool { return team == "blue" })
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := inviteAll(t.Context(), b, rows, strings.NewReader(`{"email": "ann@example.com", "seats": 1}
{"email": "bob@example.com", "seats": 2}
{"email": "cleo@example.com", "seats": 2, "team": "blue"}
{"email": "dan@example.com", "seats": 2, "team": "red"}
`))
	if err != nil || receipt.Rows != 4 || receipt.Rejected != 2 {
		t.Fatalf("%+v, %v", receipt, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	var lock sync.Mutex
	var keys []string
	go func() {
		sent <- sendInvitations(ctx, box, rows, func(key, _ string) (string, error) {
			lock.Lock()
			defer lock.Unlock()
			keys = append(keys, key)
			return "mail", outbox.Permanent(errors.New("no such address"))
		})
	}()
	told := 0
	p, err := waitFor(t.Context(), b, receipt.ID, func(_, total int) { told = total })
	stop()
	if err = errors.Join(err, <-sent); err != nil || !p.Completed() || p.Dead != 2 || told != 4 {
		t.Errorf("%+v, %d, %v", p, told, err)
	}
	if slices.Sort(keys); !slices.Equal(keys, []string{"spring-campaign/1", "spring-campaign/3"}) {
		t.Errorf("%q", keys)
	}
	page, err := progressPage(b, func(*http.Request) (outbox.Scope, error) { return outbox.Scope{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/batches/{id}/progress", page)
	server := httptest.NewServer(mux)
	defer server.Close()
	answer, err := http.Get(server.URL + "/batches/" + strconv.FormatInt(receipt.ID, 10) + "/progress")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(body), `"dead":2`) {
		t.Errorf("%s, %v", body, err)
	}
}
