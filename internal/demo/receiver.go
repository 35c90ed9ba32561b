package demo

import (
	"io"
	"net/http"
	"sync"
)

// A receiver is a service of somebody else. It performs what it is asked for, once for each idempotency key, if its faults let it.
type receiver struct {
	*service
	ambush chan struct{} // closed when the caller that the faults single out has made its last call

	mu         sync.Mutex
	faults     faults
	ledger     map[string]bool // the keys of what was performed
	performed  map[string]int  // how many of each kind
	duplicates int             // calls for what was performed already
	failures   int             // calls that came to nothing and will be made again
}

func startReceiver(faults faults) (*receiver, error) {
	r := &receiver{ambush: make(chan struct{}), faults: faults, ledger: map[string]bool{}, performed: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{kind}", r.post)
	var err error
	r.service, err = serve(mux)
	return r, err
}

// noAnswer stands for the status of a call that is left hanging.
const noAnswer = 0

func (r *receiver) post(w http.ResponseWriter, req *http.Request) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return // the caller is gone
	}
	status := r.perform(req.PathValue("kind"), req.Header.Get("Idempotency-Key"))
	if status == noAnswer {
		<-req.Context().Done() // the caller gave up, or died
		return
	}
	w.WriteHeader(status)
}

func (r *receiver) perform(kind, key string) (status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status, failed := r.faults.strike(key); failed {
		if status != http.StatusUnprocessableEntity {
			r.failures++
		}
		return status
	}
	if r.ledger[key] {
		r.duplicates++
		return http.StatusOK
	}
	r.ledger[key] = true
	r.performed[kind]++
	if len(r.ledger) == r.faults.fatal {
		close(r.ambush)
		return noAnswer
	}
	return http.StatusOK
}

// count says how many effects of a kind were performed.
func (r *receiver) count(kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.performed[kind]
}

// repair makes the receiver accept what it refused.
func (r *receiver) repair() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults.refused = ""
}
