package outbox

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// A Filter narrows a list to exact names; an empty one matches all.
type Filter struct {
	Consumer, Target, Kind string
}

// A ListQuery asks for one page of messages.
type ListQuery struct {
	// State is one of the seven, or empty for all open messages.
	State  State
	Filter Filter
	// Limit of the page. More than 1,000 is 1,000; zero or less finds nothing and sends no query.
	Limit int
	// From is where the page before ended; zero for the first.
	From Cursor
}

// A Cursor is a place in a list; take it from Page.Next. It stays valid whatever happens to the messages.
type Cursor struct {
	At time.Time
	ID int64

	claim [3]string // tenant, scope and key, where claims are walked over
}

// A Page is part of a list: open messages by rising id, delivered ones by falling id, the others by falling time of settlement.
type Page struct {
	Messages []Summary
	// Next goes on from here, while More says that there may be further ones. A page may be short, even empty, and still have More: what
	// one statement looks at is bounded. Messages committed late, below the place that was reached, are not shown.
	Next Cursor
	More bool
}

// A Summary is a message without its content. Instants that do not apply are zero.
type Summary struct {
	ID                     int64
	Tenant                 string
	Consumer, Target, Kind string
	Key, OrderKey          string
	State                  State
	Attempt                int
	Epoch                  int64
	Replays                int
	ReplayedAt             time.Time
	// Cause of a dead message.
	Cause Cause
	// Reason of its end, or the last error of an open message.
	Reason    string
	CreatedAt time.Time
	// DueAt and LeasedUntil of an open message.
	DueAt, LeasedUntil time.Time
	SettledAt          time.Time
}

// List pages through the messages of one state. One statement. Retryable.
func (b *Box) List(ctx context.Context, scope Scope, query ListQuery) (Page, error) {
	var found problems
	scope.check(&found)
	found.text("Consumer", query.Filter.Consumer, maxName)
	found.text("Target", query.Filter.Target, maxName)
	found.text("Kind", query.Filter.Kind, maxName)
	list, ok := lists[query.State]
	if !ok {
		found.add("State", "is no state")
	}
	if err := found.refused(ctx); err != nil {
		return Page{}, failed("list", err)
	}
	limit := min(query.Limit, maxBatch)
	if limit <= 0 {
		return Page{}, nil
	}
	rows, err := list(ctx, b.store, scope, query, int32(limit))
	if err != nil {
		return Page{}, failed("list", err)
	}
	return newPage(rows, limit), nil
}

// newPage turns rows, in the order of the list, into a page. A last row that did not match says how far the statement looked.
func newPage(rows []db.ListOpenRow, limit int) Page {
	var page Page
	for _, row := range rows {
		page.Next = Cursor{At: row.SettledAt.UTC(), ID: row.ID}
		if row.Matched {
			page.Messages = append(page.Messages, newSummary(row))
		}
	}
	page.More = len(page.Messages) < len(rows) || len(page.Messages) == limit
	return page
}

func newSummary(row db.ListOpenRow) Summary {
	return Summary{
		ID: row.ID, Tenant: row.Tenant, Consumer: row.Consumer, Target: row.Target, Kind: row.Kind, Key: row.Key, OrderKey: row.OrderKey,
		State: State(row.State), Attempt: int(row.Attempt), Epoch: row.Epoch, Replays: int(row.Replays), ReplayedAt: row.ReplayedAt.UTC(),
		Cause: Cause(row.Cause), Reason: row.Reason, CreatedAt: row.CreatedAt.UTC(), DueAt: row.DueAt.UTC(),
		LeasedUntil: row.LeasedUntil.UTC(), SettledAt: row.SettledAt.UTC(),
	}
}

// lists holds the statement that serves each state. Their rows have identical fields.
var lists = map[State]func(context.Context, db.Store, Scope, ListQuery, int32) ([]db.ListOpenRow, error){
	"":             listOpen,
	StatePending:   listOpen,
	StateLeased:    listOpen,
	StateParked:    listOpen,
	StateDelivered: listDelivered,
	StateDead:      listUndelivered,
	StateCancelled: listUndelivered,
	StateExpired:   listUndelivered,
}

func listOpen(ctx context.Context, store db.Store, scope Scope, query ListQuery, limit int32) ([]db.ListOpenRow, error) {
	rows, err := store.ListOpen(ctx, db.ListOpenParams{
		AfterID: query.From.ID, Examine: listExamine(limit), AllTenants: scope.all, Scope: scope.Names(),
		Consumer: query.Filter.Consumer, Target: query.Filter.Target, Kind: query.Filter.Kind, State: string(query.State), MaxRows: limit,
	})
	slices.SortFunc(rows, func(a, b db.ListOpenRow) int { return cmp.Compare(a.ID, b.ID) })
	return rows, err
}

func listDelivered(ctx context.Context, store db.Store, scope Scope, query ListQuery, limit int32) ([]db.ListOpenRow, error) {
	found, err := store.ListDelivered(ctx, db.ListDeliveredParams{
		BeforeID: cmp.Or(query.From.ID, math.MaxInt64), Examine: listExamine(limit), AllTenants: scope.all, Scope: scope.Names(),
		Consumer: query.Filter.Consumer, Target: query.Filter.Target, Kind: query.Filter.Kind, MaxRows: limit,
	})
	rows := make([]db.ListOpenRow, len(found))
	for i, row := range found {
		rows[i] = db.ListOpenRow(row)
	}
	slices.SortFunc(rows, func(a, b db.ListOpenRow) int { return cmp.Compare(b.ID, a.ID) })
	return rows, err
}

func listUndelivered(ctx context.Context, store db.Store, scope Scope, query ListQuery, limit int32) ([]db.ListOpenRow, error) {
	from := query.From
	if from == (Cursor{}) {
		from = Cursor{At: forever, ID: math.MaxInt64}
	}
	found, err := store.ListUndelivered(ctx, db.ListUndeliveredParams{
		Outcome: string(query.State), BeforeAt: stored(from.At), BeforeID: from.ID, Examine: listExamine(limit),
		AllTenants: scope.all, Scope: scope.Names(),
		Consumer: query.Filter.Consumer, Target: query.Filter.Target, Kind: query.Filter.Kind, MaxRows: limit,
	})
	rows := make([]db.ListOpenRow, len(found))
	for i, row := range found {
		rows[i] = db.ListOpenRow(row)
	}
	slices.SortFunc(rows, func(a, b db.ListOpenRow) int {
		return cmp.Or(b.SettledAt.Compare(a.SettledAt), cmp.Compare(b.ID, a.ID))
	})
	return rows, err
}

// listExamine is how many rows a list may look at for one page.
func listExamine(limit int32) int32 { return max(1000, 10*limit) }
