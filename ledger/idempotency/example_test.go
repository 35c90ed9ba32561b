package idempotency_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/ledger/idempotency"
	"github.com/fencepost-go/fencepost/outbox"
)

func Example() {
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{}) // a program uses pgxdb.New or sqldb.New
	if err != nil {
		log.Fatal(err)
	}
	l, err := ledger.New(box, ledger.Config{})
	if err != nil {
		log.Fatal(err)
	}
	account := func(r *http.Request) (string, bool) {
		user, _, ok := r.BasicAuth() // which a program checks before
		return user, ok
	}
	serve, err := idempotency.New(l, account, idempotency.Config{})
	if err != nil {
		log.Fatal(err)
	}
	payments := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claim, _ := idempotency.ClaimOf(r.Context())
		fmt.Println("charging under", claim.Key) // handed on to whoever charges
		w.WriteHeader(http.StatusCreated)
	}))

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(`{"cents": 100}`))
		r.SetBasicAuth("ann", "")
		r.Header.Set("Idempotency-Key", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`)
		w := httptest.NewRecorder()
		payments.ServeHTTP(w, r)
		fmt.Println(w.Code, "replayed:", w.Header().Get("Idempotency-Replayed") == "true")
	}
	// Output:
	// charging under 8e03978e-40d5-43dd-bc93-6894a57f9324
	// 201 replayed: false
	// 201 replayed: true
}
