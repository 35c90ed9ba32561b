package outbox

import (
	"context"
	"crypto/rand"
	"strings"
	"time"
	"unicode"

	"github.com/fencepost-go/fencepost/db"
)

const (
	maxPermits  = 100     // of one credential
	mostPermits = 100_000 // that Credentials looks at
)

// A Permit is a consumer and a tenant that a named worker may lease for. Each may be Any.
type Permit struct {
	Consumer, Tenant string
}

// A CredentialRecord is what is known of a named worker; its secret is not.
type CredentialRecord struct {
	Name      string
	Permits   []Permit
	Added     By
	AddedAt   time.Time
	Revoked   By
	RevokedAt time.Time // zero while it is let in
}

// AddCredential lets a named worker in for consumers and tenants, at least one and at most 100, and gives the credential, whose secret is stored
// nowhere; false when the name was given before, be it to a worker that is revoked: what was done under a name stays that worker's. By goes into
// the credential's record. Not retryable: after an error revoke the name, and add another.
func (b *Box) AddCredential(ctx context.Context, name string, permits []Permit, by By) (Credential, bool, error) {
	var found problems
	found.name("Name", name, maxName)
	if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		found.add("Name", "has white space, or what cannot be printed: it is part of a line that people copy")
	}
	if len(permits) == 0 || len(permits) > maxPermits {
		found.addf("Permits", "has %d entries, not between 1 and %d", len(permits), maxPermits)
	}
	seen := make(map[Permit]bool, len(permits))
	params := db.AddCredentialParams{Name: name, Iterations: iterations, Salt: make([]byte, saltBytes)}
	for i, p := range permits {
		found.at(i).required("Consumer", p.Consumer, maxName)
		found.optional("Tenant", p.Tenant, maxName)
		if !seen[p] {
			seen[p] = true
			params.Consumers, params.Tenants = append(params.Consumers, p.Consumer), append(params.Tenants, p.Tenant)
		}
	}
	by = found.whole().by(by)
	if err := found.refused(ctx); err != nil {
		return Credential{}, false, failed("add credential", err)
	}
	params.Actor, params.Reason = by.Actor, by.Reason
	_, _ = rand.Read(params.Salt)
	credential := newCredential(name)
	var err error
	if params.Hash, err = credential.hash(params.Salt, iterations); err != nil {
		return Credential{}, false, failed("add credential", err)
	}
	added, err := b.store.AddCredential(ctx, params)
	if err != nil || len(added) == 0 {
		return Credential{}, false, failed("add credential", err)
	}
	return credential, true, nil
}

// RevokeCredential shuts a named worker out for good; false when there is none of this name that is let in. A sender that runs under it obeys at its
// next renewal or within 10 s, whichever is sooner: see sender.Config.Credential. Retryable.
func (b *Box) RevokeCredential(ctx context.Context, name string, by By) (bool, error) {
	var found problems
	found.name("Name", name, maxName)
	by = found.by(by)
	if err := found.refused(ctx); err != nil {
		return false, failed("revoke credential", err)
	}
	revoked, err := b.store.RevokeCredential(ctx, db.RevokeCredentialParams{Name: name, Actor: by.Actor, Reason: by.Reason})
	return len(revoked) > 0, failed("revoke credential", err)
}

// Credentials lists the named workers by name, those that are revoked included; of a hundred thousand permits and more only the first. Retryable.
func (b *Box) Credentials(ctx context.Context) ([]CredentialRecord, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("credentials", err)
	}
	rows, err := b.store.ListCredentials(ctx, db.ListCredentialsParams{MaxRows: mostPermits})
	if err != nil {
		return nil, failed("credentials", err)
	}
	var records []CredentialRecord
	for _, row := range rows {
		if n := len(records); n == 0 || records[n-1].Name != row.Name {
			record := CredentialRecord{Name: row.Name, Added: By{row.CreatedBy, row.CreatedFor}, AddedAt: row.CreatedAt.UTC()}
			if row.RevokedBy != "" {
				record.Revoked, record.RevokedAt = By{row.RevokedBy, row.RevokedFor}, row.RevokedAt.UTC()
			}
			records = append(records, record)
		}
		last := &records[len(records)-1]
		last.Permits = append(last.Permits, Permit{row.Consumer, row.Tenant})
	}
	return records, nil
}
