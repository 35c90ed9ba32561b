package outbox

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Whatever function is called, each observer hears of it although the one before panics, and all hear of the panic.
func TestObserversTellEach(t *testing.T) {
	t.Parallel()
	observersTellEach(t, func() { panic("out of order") }, func(string) bool { return true })
}

// One that ends its goroutine ends the caller's where that is what the functions run in.
func TestObserversEndTheirGoroutine(t *testing.T) {
	t.Parallel()
	callers := []string{"Propagate", "Enqueued", "Settled", "HandlerStarting", "HandlerDone"}
	observersTellEach(t, runtime.Goexit, func(field string) bool { return !slices.Contains(callers, field) })
}

func observersTellEach(t *testing.T, fail func(), goesOn func(field string) bool) {
	var heard []string
	observer := func(name string, fails bool) *Observer {
		o := &Observer{}
		for field, value := range reflect.ValueOf(o).Elem().Fields() {
			value.Set(reflect.MakeFunc(value.Type(), func(args []reflect.Value) []reflect.Value {
				if field.Name == "Contained" {
					heard = append(heard, fmt.Sprint(name, " contained ", args[0]))
					fail()
				}
				heard = append(heard, name+" "+field.Name)
				if fails {
					fail()
				}
				if value.Type().NumOut() == 0 {
					return nil
				}
				if field.Name == "HandlerStarting" {
					return args[:1]
				}
				return []reflect.Value{reflect.Zero(value.Type().Out(0))}
			}))
		}
		return o
	}
	box := newBench(t, Config{Observer: Observers(observer("a", true), nil, &Observer{}, Observers(observer("b", false)))}, Policy{}).box
	for field, function := range reflect.ValueOf(box.Observer()).Elem().Fields() {
		if field.Name == "Contained" {
			continue
		}
		heard = nil
		var args []reflect.Value
		for in := range function.Type().Ins() {
			switch {
			case in == reflect.TypeFor[context.Context]():
				args = append(args, reflect.ValueOf(t.Context()))
			case in.Kind() == reflect.Slice:
				args = append(args, reflect.MakeSlice(in, 1, 1))
			default:
				args = append(args, reflect.Zero(in))
			}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			function.Call(args)
		}()
		<-ended
		failed := "contained Observer." + field.Name
		want := []string{"a " + field.Name, "a " + failed, "b " + failed}
		if goesOn(field.Name) {
			want = append(want, "b "+field.Name)
		} else {
			want = append(want, want[1:]...) // the box joins them once more
		}
		if !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
	}
}

type valueKey struct{}

// An observer adds values to a handler's context and can do nothing else to it.
func TestObserversCannotDetachAHandler(t *testing.T) {
	t.Parallel()
	adding := func(text string) *Observer {
		return &Observer{HandlerStarting: func(ctx context.Context, _ Message) context.Context {
			before, _ := ctx.Value(valueKey{}).(string)
			return context.WithValue(ctx, valueKey{}, before+text)
		}}
	}
	var contained []string
	observers := []*Observer{adding("a"), {Contained: func(what string, _ any) { contained = append(contained, what) }}}
	for _, other := range []func(context.Context) context.Context{
		func(context.Context) context.Context { return nil },
		context.WithoutCancel,
		func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(context.WithValue(ctx, valueKey{}, "other"))
			cancel()
			return ctx
		},
	} {
		observers = append(observers, &Observer{HandlerStarting: func(ctx context.Context, _ Message) context.Context { return other(ctx) }})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := Observers(append(observers, adding("b"))...).HandlerStarting(ctx, Message{})
	if got.Value(valueKey{}) != "ab" || got.Done() != ctx.Done() || len(contained) != 3 || contained[0] != "Observer.HandlerStarting" {
		t.Errorf("value %v, contained %q", got.Value(valueKey{}), contained)
	}
}

// The trace context travels in the metadata and is no part of the content.
func TestPropagate(t *testing.T) {
	t.Parallel()
	trace := map[string]string{"traceparent": "00-1", "tracestate": "x=1", "baggage": "user=7", "b3": "foreign", "m": "of the trace"}
	observer := &Observer{Propagate: func(context.Context) map[string]string { return trace }}
	b := newBench(t, Config{Observer: Observers(observer, &Observer{})}, Policy{})
	given := effect("k")
	given.Metadata = map[string]string{"m": "of the caller"}
	id := b.enqueue(given)[0].ID
	want := map[string]string{"traceparent": "00-1", "tracestate": "x=1", "baggage": "user=7", "m": "of the caller"}
	if got := b.show(id).Metadata; !reflect.DeepEqual(got, want) || len(given.Metadata) != 1 {
		t.Errorf("stored %q, left the caller with %q", got, given.Metadata)
	}
	trace = map[string]string{"traceparent": "00-2"}
	if again := b.enqueue(given)[0]; again.Status != Duplicate || again.ID != id {
		t.Errorf("under another trace: %+v", again)
	}
	if got := b.lease(1)[0].Metadata; !reflect.DeepEqual(got, want) {
		t.Errorf("leased %q", got)
	}
}

// A trace context that cannot be stored is left out; the effect is recorded.
func TestPropagateNeverFails(t *testing.T) {
	t.Parallel()
	var trace map[string]string
	b := newBench(t, Config{Observer: &Observer{Propagate: func(context.Context) map[string]string { return trace }}}, Policy{})
	for i, test := range []struct{ baggage, want string }{
		{"", ""},
		{"a\x00b", ""},
		{"a\xffb", ""},
		{strings.Repeat("a", maxTrace), ""},
		{strings.Repeat("\x01", maxTrace-len("traceparent00-1baggage")), strings.Repeat("\x01", maxTrace-len("traceparent00-1baggage"))},
	} {
		trace = map[string]string{"traceparent": "00-1", "baggage": test.baggage}
		longest := effect(fmt.Sprint(i))
		longest.Metadata = map[string]string{}
		for n := range 64 {
			longest.Metadata[fmt.Sprintf("%02d", n)] = strings.Repeat("\x01", 8<<10/64-2)
		}
		got := b.show(b.enqueue(longest)[0].ID).Metadata
		if got["traceparent"] != "00-1" || got["baggage"] != test.want || got["63"] != longest.Metadata["63"] {
			t.Errorf("baggage of %d bytes came back with %d", len(test.baggage), len(got["baggage"]))
		}
	}
}
