package webhook_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/webhook"
)

// What a person would try: curl posts one signed webhook a hundred times at once, then its id with another body, then a body that was not signed.
// Shows: S4.2 S4.3 S4.20
func TestCurl(t *testing.T) {
	t.Parallel()
	curl := pgtest.Program(t, "curl", `"brew install curl" on macOS`, "curl")
	onStores(t, func(t *testing.T, store db.Store) {
		r := newRig(t, store, webhook.ReceiverConfig{RecordTimeout: patience}, nil)
		server := httptest.NewServer(r.receiver)
		defer server.Close()
		folder := t.TempDir()
		post := func(signed, sent string, times string) map[string]int {
			header, err := webhook.Sign("msg_1", time.Now(), []byte(signed), r.secret)
			if err != nil {
				t.Fatal(err)
			}
			body := filepath.Join(folder, "body")
			if err := os.WriteFile(body, []byte(sent), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{
				"--silent", "--parallel", "--parallel-immediate", "--parallel-max", "100", "--data-binary", "@" + body,
				"--output", os.DevNull, "--write-out", "%{http_code} %header{" + webhook.Replayed + "}\n", "--noproxy", "*",
			}
			for name := range header {
				args = append(args, "--header", name+": "+header.Get(name))
			}
			out, err := exec.CommandContext(t.Context(), curl, append(args, server.URL+"/hooks/bank?n="+times)...).Output()
			if err != nil {
				t.Fatalf("curl: %v\n%s", err, out)
			}
			answers := map[string]int{}
			for line := range strings.Lines(string(out)) {
				answers[strings.TrimSpace(line)]++
			}
			return answers
		}
		if got := post(`{"paid": 7}`, `{"paid": 7}`, "[1-100]"); len(got) != 2 || got["204"] != 1 || got["204 true"] != 99 {
			t.Errorf("the same a hundred times: %v", got)
		}
		if got := post(`{"paid": 8}`, `{"paid": 8}`, "[1-10]"); len(got) != 1 || got["409"] != 10 {
			t.Errorf("its id with another body: %v", got)
		}
		if got := post(`{"paid": 7}`, `{"paid": 9}`, "1"); len(got) != 1 || got["401"] != 1 {
			t.Errorf("a body that was not signed: %v", got)
		}
		if r.recorded() != 1 || r.commits.Load() != 1 {
			t.Errorf("%d events, %d commits", r.recorded(), r.commits.Load())
		}
	})
}
