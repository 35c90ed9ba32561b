package outbox

import (
	"context"
	"time"
)

// Observers makes one of several, which tells each of them in order, whatever the others do; nil ones are left out. Of a name that more than
// one propagates the last value counts.
func Observers(all ...*Observer) *Observer {
	var told observers
	for _, o := range all {
		if o != nil {
			told = append(told, o)
		}
	}
	return told.joined()
}

type observers []*Observer

// contained tells all of them of a problem; a problem with that is dropped.
func (all observers) contained(what string, problem any) {
	for _, o := range all {
		if o.Contained != nil {
			_, _ = contain(func() any {
				o.Contained(what, problem)
				return nil
			})
		}
	}
}

// tell calls one of the functions of each, and contains its panic.
func (all observers) tell(function string, call func(*Observer)) {
	for _, o := range all {
		all.guarded(function, o, call)
	}
}

func (all observers) guarded(function string, o *Observer, call func(*Observer)) {
	var problem any = errEnded // then this tells why the caller's goroutine ended with it
	defer func() {
		if p := recover(); p != nil {
			problem = p
		}
		if problem != nil {
			all.contained("Observer."+function, problem)
		}
	}()
	call(o)
	problem = nil
}

// tellApart is tell for what does not happen for each message: it costs a goroutine, which the function may end.
func (all observers) tellApart(function string, call func(*Observer)) {
	for _, o := range all {
		_, problem := contain(func() any {
			call(o)
			return nil
		})
		if problem != nil {
			all.contained("Observer."+function, problem)
		}
	}
}

// joined is an Observer without nil fields whose panics do not reach the caller.
func (all observers) joined() *Observer {
	return &Observer{
		Propagate:       all.propagate,
		HandlerStarting: all.handlerStarting,
		Contained:       all.contained,
		Enqueued: func(ctx context.Context, effects []Effect, receipts []Receipt) {
			all.tell("Enqueued", func(o *Observer) {
				if o.Enqueued != nil {
					o.Enqueued(ctx, effects, receipts)
				}
			})
		},
		Leased: func(ctx context.Context, messages []Message) {
			all.tellApart("Leased", func(o *Observer) {
				if o.Leased != nil && len(messages) > 0 {
					o.Leased(ctx, messages)
				}
			})
		},
		Settled: func(ctx context.Context, message Message, outcome Outcome, result Result) {
			all.tell("Settled", func(o *Observer) {
				if o.Settled != nil {
					o.Settled(ctx, message, outcome, result)
				}
			})
		},
		Retried: func(ctx context.Context, message Message, outcome Outcome, delay time.Duration) {
			all.tellApart("Retried", func(o *Observer) {
				if o.Retried != nil {
					o.Retried(ctx, message, outcome, delay)
				}
			})
		},
		Dead: func(ctx context.Context, burial Burial) {
			all.tellApart("Dead", func(o *Observer) {
				if o.Dead != nil {
					o.Dead(ctx, burial)
				}
			})
		},
		LeaseLost: func(ctx context.Context, message Message) {
			all.tellApart("LeaseLost", func(o *Observer) {
				if o.LeaseLost != nil {
					o.LeaseLost(ctx, message)
				}
			})
		},
		GivenBack: func(ctx context.Context, messages []Message) {
			all.tellApart("GivenBack", func(o *Observer) {
				if o.GivenBack != nil && len(messages) > 0 {
					o.GivenBack(ctx, messages)
				}
			})
		},
		HandlerDone: func(ctx context.Context, message Message, outcome Outcome, took time.Duration) {
			all.tell("HandlerDone", func(o *Observer) {
				if o.HandlerDone != nil {
					o.HandlerDone(ctx, message, outcome, took)
				}
			})
		},
		Rescan: func(ctx context.Context, consumer *Consumer, took time.Duration) {
			all.tellApart("Rescan", func(o *Observer) {
				if o.Rescan != nil {
					o.Rescan(ctx, consumer, took)
				}
			})
		},
		Listening: func(ctx context.Context, up bool) {
			all.tellApart("Listening", func(o *Observer) {
				if o.Listening != nil {
					o.Listening(ctx, up)
				}
			})
		},
		Measured: func(ctx context.Context, stats Stats, pauses []Pause) {
			all.tellApart("Measured", func(o *Observer) {
				if o.Measured != nil {
					o.Measured(ctx, stats, pauses)
				}
			})
		},
		Purged: func(ctx context.Context, state State, count int) {
			all.tellApart("Purged", func(o *Observer) {
				if o.Purged != nil {
					o.Purged(ctx, state, count)
				}
			})
		},
		JanitorDone: func(ctx context.Context, at time.Time, err error) {
			all.tellApart("JanitorDone", func(o *Observer) {
				if o.JanitorDone != nil {
					o.JanitorDone(ctx, at, err)
				}
			})
		},
	}
}

// propagate merges what each gives.
func (all observers) propagate(ctx context.Context) map[string]string {
	var trace map[string]string
	all.tell("Propagate", func(o *Observer) {
		if o.Propagate != nil {
			trace = traced(o.Propagate(ctx), trace)
		}
	})
	return trace
}

// handlerStarting passes the context from one to the next. Whatever they return, it ends when the lease does.
func (all observers) handlerStarting(ctx context.Context, message Message) context.Context {
	all.tell("HandlerStarting", func(o *Observer) {
		if o.HandlerStarting == nil {
			return
		}
		next := o.HandlerStarting(ctx, message)
		if next == nil || next.Done() != ctx.Done() {
			all.contained("Observer.HandlerStarting", "gave a context that does not end with the handler's")
			return
		}
		ctx = next
	})
	return ctx
}
