package sender

import (
	"context"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A team is the workers of one box that run side by side in a process. What each asks of the database now and then, one asks for all.
type team struct {
	scans   together[outbox.LaneQuery, []outbox.DueLane]
	touches together[int64, bool]
}

func newTeam(box *outbox.Box) *team {
	t := &team{}
	t.scans.call, t.touches.call = box.DueLanesOf, box.TouchWorkers
	return t
}

// together has questions of several workers answered by one call. Whoever's time has come asks for all that have put theirs; for them the answer
// counts as if they had asked, and so they all come to ask at the same times.
type together[Question, Answer any] struct {
	call func(context.Context, []Question) ([]Answer, error) // answers in their order

	mu   sync.Mutex
	put  map[*worker]Question
	last *round[Answer]
}

// A round is one call for several workers.
type round[Answer any] struct {
	began, ended time.Time
	places       map[*worker]int
	done         chan struct{} // closed when the rest is there
	answers      []Answer
	err          error
}

// willing says that a worker's question may be asked along with those of others; leave takes that back.
func (t *together[Question, Answer]) willing(w *worker, q Question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.put == nil {
		t.put = map[*worker]Question{}
	}
	t.put[w] = q
}

func (t *together[Question, Answer]) leave(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.put, w)
}

// answer is that of a round which began after the given time and has the worker's question: another's, or one of its own. Who asks alone asks for
// nobody else: what wakes one worker may wake all.
func (t *together[Question, Answer]) answer(ctx context.Context, w *worker, q Question, since time.Time, alone bool) (Answer, *round[Answer], error) {
	if r := t.roundSince(w, since); r != nil {
		select {
		case <-r.done:
			if r.err == nil {
				return r.answers[r.places[w]], r, nil
			}
		case <-ctx.Done():
		}
	}
	r := t.ask(ctx, w, q, alone)
	if r.err != nil {
		var none Answer
		return none, r, r.err
	}
	return r.answers[r.places[w]], r, nil
}

// ask makes a round.
func (t *together[Question, Answer]) ask(ctx context.Context, w *worker, q Question, alone bool) *round[Answer] {
	r, questions := t.begin(w, q, alone)
	r.err = errCallGoexit
	defer func() {
		r.ended = time.Now()
		close(r.done)
	}()
	r.answers, r.err = t.call(ctx, questions)
	return r
}

func (t *together[Question, Answer]) roundSince(w *worker, since time.Time) *round[Answer] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || !t.last.began.After(since) {
		return nil
	}
	if _, asked := t.last.places[w]; !asked {
		return nil
	}
	return t.last
}

func (t *together[Question, Answer]) begin(w *worker, q Question, alone bool) (*round[Answer], []Question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &round[Answer]{began: time.Now(), places: map[*worker]int{w: 0}, done: make(chan struct{})}
	questions := []Question{q}
	if alone {
		return r, questions
	}
	for other, theirs := range t.put {
		if other != w {
			r.places[other] = len(questions)
			questions = append(questions, theirs)
		}
	}
	t.last = r
	return r, questions
}
