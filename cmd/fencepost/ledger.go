package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

func newLedger() *cobra.Command {
	return newGroup("ledger", "Look at the ledger of claims",
		"Look at the ledger: keys claimed before the work, and what came of them; receipts of a bus's handlers are claims, too.",
		"  fencepost ledger show charges order-77",
		newLedgerShow())
}

func newLedgerShow() *cobra.Command {
	var c connection
	var tenant string
	cmd := &cobra.Command{
		Use:   "show SCOPE KEY",
		Short: "Show how a claim stands, its result included",
		Long: `Show how a claim stands, its result included: think of who is looking. A claim that is held longer than its holder asked
for can be taken by another. The receipt of a bus's handler has the bus's and the handler's name as scope, as in books:turnover and the event's id as key.

A result that is text is shown with everything escaped that a terminal might act on, another as a hex dump, and a
long one is cut. --json has the exact bytes (result_base64), and result_text where they are text.`,
		Example: `  fencepost ledger show charges order-77
  fencepost ledger show charges order-77 --json | jq -r .state`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("show takes the scope and the key of one claim; see %s --help", cmd.CommandPath())
			}
			return nil
		},
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	cmd.Flags().Var(textFlag{&tenant}, "tenant", "the claim's tenant (default the tenant without a name)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var found refusal.Problems
		bounds.CheckOptionalName(tenant, bounds.Name, found.On("tenant"))
		bounds.CheckRequired(args[0], bounds.Name, found.On("SCOPE"))
		bounds.CheckRequired(args[1], bounds.Key, found.On("KEY"))
		if err := found.Err(); err != nil {
			return err
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			var rows []db.FindClaimsRow
			err := box.Store().Transact(ctx, func(tx db.Tx) (err error) {
				rows, err = box.Store().FindClaims(ctx, tx, db.FindClaimsParams{
					Tenants: []string{tenant}, Scopes: args[:1], Keys: args[1:], Digests: [][]byte{{}},
				})
				return err
			})
			if err == nil && len(rows) == 0 {
				err = notDonef("there is no claim of that scope and key; was it purged, or is it another --tenant's?")
			}
			if err != nil {
				return cursorGone(err)
			}
			r, err := newClaimReport(tenant, args[0], args[1], rows[0])
			if err != nil {
				return err
			}
			return output(cmd, r)
		})
	}
	return cmd
}

var claimStates = map[int16]string{db.ClaimHeld: "held", db.ClaimCompleted: "completed", db.ClaimFailed: "failed", db.ClaimRejected: "rejected"}

type claimReport struct {
	Tenant       string     `json:"tenant"`
	Scope        string     `json:"scope"`
	Key          string     `json:"key"`
	State        string     `json:"state"` // held, completed, failed or rejected
	Over         bool       `json:"over"`  // held longer than its holder asked for
	Epoch        string     `json:"epoch"`
	ClaimedAt    time.Time  `json:"claimed_at"`
	HeldUntil    *time.Time `json:"held_until,omitempty"`
	EndedAt      *time.Time `json:"ended_at,omitempty"`
	Reason       string     `json:"reason,omitempty"`
	Digest       string     `json:"digest"`
	ResultBytes  int        `json:"result_bytes"`
	ResultText   string     `json:"result_text,omitempty"`
	ResultBase64 []byte     `json:"result_base64"`
}

func newClaimReport(tenant, scope, key string, row db.FindClaimsRow) (claimReport, error) {
	result, err := hex.DecodeString(row.Result)
	r := claimReport{
		Tenant: tenant, Scope: scope, Key: key, State: claimStates[row.State], Over: row.Over, Epoch: strconv.FormatInt(row.Epoch, 10),
		ClaimedAt: time.UnixMicro(row.ClaimedAt).UTC(), Reason: row.Reason, Digest: row.Digest, ResultBytes: len(result), ResultBase64: result,
	}
	at := time.UnixMicro(row.EndedAt).UTC()
	if r.EndedAt = &at; row.State == db.ClaimHeld {
		at = time.UnixMicro(row.HeldUntil).UTC()
		r.HeldUntil, r.EndedAt = &at, nil
	}
	if utf8.Valid(result) {
		r.ResultText = string(result)
	}
	return r, err
}

func (r claimReport) text(p *page) {
	state := r.State
	if r.Over {
		state += ", over: another may take it"
	}
	rows := [][]string{
		{"state", state}, {"scope", r.Scope}, {"tenant", orDash(r.Tenant)}, {"epoch", r.Epoch}, {"claimed", instant(r.ClaimedAt)},
	}
	if r.HeldUntil != nil {
		rows = append(rows, []string{"held until", instant(*r.HeldUntil)})
	}
	if r.EndedAt != nil {
		rows = append(rows, []string{"ended", instant(*r.EndedAt)})
	}
	if r.Reason != "" {
		rows = append(rows, []string{"reason", r.Reason})
	}
	rows = append(rows, []string{"digest", r.Digest}, []string{"result", fmt.Sprintf("%s bytes", thousands(int64(r.ResultBytes)))})
	p.table([]string{"claim", printable(r.Key)}, rows)
	p.payload(r.ResultBase64)
}
