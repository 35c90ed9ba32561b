package dbtest

import (
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var bytesTests = []test{
	{name: "every byte in payload, digest and token", run: keepsBytes},
	{name: "no payload and an empty one", run: keepsEmpty},
	{name: "every text as it is", run: keepsText},
	{name: "the longest texts and payload", run: keepsLongest},
	{name: "instants to the microsecond in any zone", run: keepsInstants},
}

// everyByte is n bytes that begin with those from first on.
func everyByte(first byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// Shows: S1.4
func keepsBytes(f *fixture) {
	for first := 0; first < 256; first += 16 {
		payload, digest := everyByte(byte(first), 256), everyByte(byte(first), 32)
		f.enqueue(effect{key: "a", payload: payload, digest: digest})
		p := f.leasing()
		p.Token = everyByte(byte(first), 16)
		rows, _ := f.leaseDue(p)
		sameBytes(f, "leased payload", rows[0].Payload, payload)
		sameBytes(f, "stored token", f.queued(rows[0].ID).Token, p.Token)
		shown := f.show(rows[0].ID)
		sameBytes(f, "shown payload", shown.Payload, payload)
		sameBytes(f, "shown digest", shown.Digest, digest)
		asked := asking("a", "a")
		asked.Digests[1] = digest
		found := f.find(asked)
		same(f, "another digest is the same", found[0].SameDigest, false)
		same(f, "its digest is the same", found[1].SameDigest, true)
		h := hold{[]int64{rows[0].ID}, [][]byte{p.Token}}
		same(f, "renewed", len(run(f, f.Store.Renew, h.renewed(time.Minute))), 1)
		sameIDs(f, "settled", run(f, f.Store.SettleDropped, h.dropped()), h.ids...)
	}
}

func keepsEmpty(f *fixture) {
	p := f.params(some(2)...)
	p.Payloads = [][]byte{{}, []byte("x")}
	tx, commit, _ := f.begin()
	if _, err := f.Store.Enqueue(f.Context(), tx, p); err != nil {
		f.Fatal(err)
	}
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	rows, _ := f.leaseDue(f.leasing())
	sameBytes(f, "empty payload", rows[0].Payload, nil)
	sameBytes(f, "payload", rows[1].Payload, []byte("x"))
}

// texts that databases and drivers are known to change: quotes and backslashes, array and composite syntax, NULL, empty, wide runes, a form
// that is not normalised, right to left, controls; and the letter that a careless E'\v' takes for blank.
var texts = []string{
	`v`, `'`, `"`, `\`, `\\x00`, `{}`, `{a,b}`, `(a,"b")`, `NULL`, `null`, "%s$1?", " a b ", "é", "e\u0301", "日本語", "🦀", "\u202eabc", "a\tb\nc\r", "\x01\x7f",
	"\uffff", "ÿ\u00a0",
}

func keepsText(f *fixture) {
	for _, text := range texts {
		ids := f.enqueue(effect{
			tenant: text, consumer: text, target: text, kind: text, key: text, order: text, metadata: text, event: text,
		})
		p := f.leasing(lane{kind: text, tenant: text})
		p.Consumer, p.Target, p.AllTenants, p.Scope = text, text, false, []string{text}
		rows, _ := f.leaseDue(p)
		sameIDs(f, "leased", granted(rows), ids...)
		row := rows[0]
		for _, got := range []string{row.Tenant, row.Kind, row.Key, row.OrderKey, row.Metadata, row.SourceEventID} {
			same(f, "leased text", got, text)
		}
		dead := hold{ids, [][]byte{p.Token}}.dead("moot")
		dead.Consumer, dead.Target, dead.Reasons[0], dead.Scope, dead.AllTenants = text, text, "because "+text, []string{text}, false
		sameIDs(f, "settled", run(f, f.Store.SettleDead, dead), ids...)
		same(f, "reason", f.settled(ids[0]).Reason, "because "+text)
	}
	p := opens()
	p.State = "pending"
	same(f, "open", len(f.listOpen(p)), 0)
}

func keepsLongest(f *fixture) {
	name := strings.Repeat("é", 64)
	e := effect{
		tenant: name, consumer: name, target: name, kind: name, order: name, key: strings.Repeat("k", 255), event: strings.Repeat("e", 64),
		metadata: strings.Repeat("m", 65536), payload: slices.Repeat([]byte{0xee}, 1<<20),
	}
	p := f.leasing(lane{kind: name, tenant: name})
	p.Consumer, p.Target = name, name
	id := f.enqueue(e)[0]
	rows, _ := f.leaseDue(p)
	sameIDs(f, "leased", granted(rows), id)
	same(f, "lengths", []int{len(rows[0].Key), len(rows[0].Metadata), len(rows[0].Payload)}, []int{255, 65536, 1 << 20})
	f.pause(name, name, name, name, 0)
	same(f, "pauses", len(run(f, f.Store.ListPauses, db.ListPausesParams{Scope: []string{name}})), 1)
}

func keepsInstants(f *fixture) {
	due := time.Date(2041, 6, 5, 23, 59, 59, 999999000, time.FixedZone("", -11*3600))
	ids := f.enqueue(effect{due: due}, effect{due: due.Add(time.Microsecond)})
	sameInstant(f, "stored", f.queued(ids[0]).DueAt, due)
	sameInstant(f, "stored next", f.queued(ids[1]).DueAt, due.Add(time.Microsecond))
	sameInstant(f, "shown", f.show(ids[0]).DueAt, due)
	sameInstant(f, "listed", f.listOpen(opens())[0].DueAt, due)
	sameInstant(f, "counted", one(f, f.Store.CountLanes, counting()).Earliest, due)
}
