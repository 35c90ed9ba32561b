package dbtest

import (
	"context"
	"errors"
	"reflect"

	"github.com/fencepost-go/fencepost/db"
)

var contextTests = []test{
	{name: "that has ended ends every operation at once", run: endsAtOnce},
}

// endsAtOnce calls every method of the store that takes a context, and params that nothing is asked of.
// Shows: S1.17
func endsAtOnce(f *fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	tx, _, rollback := f.begin()
	store, called := reflect.ValueOf(f.Store), 0
	for method := range reflect.TypeFor[db.Store]().Methods() {
		args := []reflect.Value{reflect.ValueOf(ctx)}
		if method.Type.NumIn() == 0 || method.Type.In(0) != reflect.TypeFor[context.Context]() || method.Name == "Listen" {
			continue
		}
		for i := 1; i < method.Type.NumIn(); i++ {
			arg := reflect.Zero(method.Type.In(i))
			if method.Type.In(i) == reflect.TypeFor[db.Tx]() {
				arg = reflect.ValueOf(tx)
			}
			args = append(args, arg)
		}
		results := store.MethodByName(method.Name).Call(args)
		if err, _ := results[len(results)-1].Interface().(error); !errors.Is(err, context.Canceled) {
			f.Errorf("%s gave %v", method.Name, err)
		}
		called++
	}
	if called == 0 {
		f.Error("called nothing")
	}
	if err := rollback(); err != nil {
		f.Errorf("rollback: %v", err)
	}
}
