package dbtest

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var credentialTests = []test{
	{name: "are stored as they are given", run: credentialAdd},
	{name: "take no name twice", run: credentialTwice},
	{name: "are found by their exact name", run: credentialFind},
	{name: "are revoked once, and stay", run: credentialRevoke},
	{name: "are listed by name without what verifies them", run: credentialList},
	{name: "one of two that revoke at once has done it", run: credentialRace},
}

// credential is one of a name, for pairs of consumer and tenant.
func credential(name string, pairs ...string) db.AddCredentialParams {
	p := db.AddCredentialParams{
		Name: name, Salt: bytes.Repeat([]byte{1}, 16), Hash: bytes.Repeat([]byte{0xff}, 32), Iterations: 10_000, Actor: "ann", Reason: "new host",
	}
	for pair := range slices.Chunk(pairs, 2) {
		p.Consumers, p.Tenants = append(p.Consumers, pair[0]), append(p.Tenants, pair[1])
	}
	return p
}

func revoking(name string) db.RevokeCredentialParams {
	return db.RevokeCredentialParams{Name: name, Actor: "ben", Reason: "host is gone"}
}

// found are the rows of a name in the order of consumer and tenant.
func (f *fixture) found(name string) []db.FindCredentialRow {
	f.Helper()
	rows := run(f, f.Store.FindCredential, db.FindCredentialParams{Name: name})
	slices.SortFunc(rows, func(a, b db.FindCredentialRow) int {
		return strings.Compare(a.Consumer+" "+a.Tenant, b.Consumer+" "+b.Tenant)
	})
	return rows
}

func credentialAdd(f *fixture) {
	p := credential("w:1 é", "c", "b", "c", "", "*", "*")
	at := one(f, f.Store.AddCredential, p)
	same(f, "credentials", f.dump().Credentials, []tables.Credential{{
		CreatedAt: at.UTC(), RevokedAt: tables.Forever, Iterations: 10_000, Name: p.Name, CreatedBy: "ann", CreatedFor: "new host", Salt: p.Salt, Hash: p.Hash,
	}})
	same(f, "scopes", f.dump().Scopes, []tables.CredentialScope{
		{Name: p.Name, Consumer: "*", Tenant: "*"}, {Name: p.Name, Consumer: "c"}, {Name: p.Name, Consumer: "c", Tenant: "b"},
	})
	same(f, "audit", len(f.dump().Audits), 0)
}

func credentialTwice(f *fixture) {
	one(f, f.Store.AddCredential, credential("w", "c", ""))
	f.unchanged("a name that is taken", func() {
		same(f, "added", len(run(f, f.Store.AddCredential, credential("w", "d", "*"))), 0)
	})
	one(f, f.Store.RevokeCredential, revoking("w"))
	f.unchanged("the name of a revoked one", func() {
		same(f, "added", len(run(f, f.Store.AddCredential, credential("w", "d", "*"))), 0)
	})
}

func credentialFind(f *fixture) {
	p := credential("w", "c", "", "c", "a")
	one(f, f.Store.AddCredential, p)
	one(f, f.Store.AddCredential, credential("x", "c", "b"))
	same(f, "found", f.found("w"), []db.FindCredentialRow{
		{Salt: p.Salt, Hash: p.Hash, Iterations: 10_000, Consumer: "c"}, {Salt: p.Salt, Hash: p.Hash, Iterations: 10_000, Consumer: "c", Tenant: "a"},
	})
	for _, name := range []string{"", "W", "w ", "ww", "*", "%"} {
		same(f, "found of "+name, len(f.found(name)), 0)
	}
}

func credentialRevoke(f *fixture) {
	one(f, f.Store.AddCredential, credential("w", "c", ""))
	one(f, f.Store.AddCredential, credential("x", "c", ""))
	f.Age(f, time.Hour)
	before := f.dump().Credentials
	same(f, "revoked of nobody", len(run(f, f.Store.RevokeCredential, revoking("y"))), 0)
	at := one(f, f.Store.RevokeCredential, revoking("w"))
	f.unchanged("a second revocation", func() {
		same(f, "revoked", len(run(f, f.Store.RevokeCredential, revoking("w"))), 0)
	})
	want := before[0]
	want.RevokedAt, want.RevokedBy, want.RevokedFor = at.UTC(), "ben", "host is gone"
	same(f, "credentials", f.dump().Credentials, []tables.Credential{want, before[1]})
	same(f, "found revoked", []bool{f.found("w")[0].Revoked, f.found("x")[0].Revoked}, []bool{true, false})
}

func credentialList(f *fixture) {
	second, first := one(f, f.Store.AddCredential, credential("b", "c", "t")), one(f, f.Store.AddCredential, credential("a", "d", "", "c", "*"))
	gone := one(f, f.Store.RevokeCredential, revoking("b"))
	rows := run(f, f.Store.ListCredentials, db.ListCredentialsParams{MaxRows: 100})
	for i := range rows {
		rows[i].CreatedAt, rows[i].RevokedAt = rows[i].CreatedAt.UTC(), rows[i].RevokedAt.UTC()
	}
	a := db.ListCredentialsRow{Name: "a", CreatedAt: first.UTC(), CreatedBy: "ann", CreatedFor: "new host", RevokedAt: tables.Forever, Consumer: "c", Tenant: "*"}
	d := a
	d.Consumer, d.Tenant = "d", ""
	same(f, "listed", rows, []db.ListCredentialsRow{a, d, {
		Name: "b", CreatedAt: second.UTC(), CreatedBy: "ann", CreatedFor: "new host", RevokedAt: gone.UTC(), RevokedBy: "ben", RevokedFor: "host is gone",
		Consumer: "c", Tenant: "t",
	}})
	same(f, "of one row", len(run(f, f.Store.ListCredentials, db.ListCredentialsParams{MaxRows: 1})), 1)
}

func credentialRace(f *fixture) {
	one(f, f.Store.AddCredential, credential("w", "c", ""))
	done := make(chan int)
	for _, store := range []db.Store{f.Store, f.Second} {
		go func() {
			rows, err := store.RevokeCredential(f.Context(), revoking("w"))
			if err != nil {
				f.Error(err)
			}
			done <- len(rows)
		}()
	}
	same(f, "revocations", <-done+<-done, 1)
}
