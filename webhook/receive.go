package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
)

// recordTries bounds how often a transaction is run that the database refuses for a conflict with another.
const recordTries = 3

// ServeHTTP makes two checks, one after the other: that the webhook is who's it says, and that it did not come before.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "webhooks are posted")
		return
	}
	d, ok := rc.verified(w, r)
	if !ok {
		return
	}
	result, err := rc.once(context.WithoutCancel(r.Context()), &d)
	switch {
	case result.Status == ledger.Conflicted:
		refuse(w, http.StatusConflict, HeaderID+" was used for another body")
	case err != nil && (d.recorded || errors.Is(err, outbox.ErrInvalid)): // the latter for a tenant or a source that is no name
		rc.broken(w, r, http.StatusInternalServerError, "webhook not recorded", err)
	case err != nil:
		rc.broken(w, r, http.StatusServiceUnavailable, "webhook not claimed", err)
	case result.Status == ledger.Claimed:
		for _, do := range d.committed {
			do()
		}
		d.Answer.write(w)
	case result.Status == ledger.InProgress: // a claim that was committed by itself, and so none of a Receiver
		refuse(w, http.StatusServiceUnavailable, "somebody is at it")
	case result.Rejected():
		refuse(w, http.StatusConflict, "it was rejected")
	default:
		rc.replay(w, r, result.Result)
	}
}

// verified reads the body and checks the signature over it, before anything else looks at either.
func (rc *Receiver) verified(w http.ResponseWriter, r *http.Request) (d Delivery, ok bool) {
	origin, err := rc.from(r)
	switch {
	case errors.Is(err, ErrUnknownOrigin):
		refuse(w, http.StatusUnauthorized, ErrUnknownOrigin.Error())
		return d, false
	case err != nil:
		rc.broken(w, r, http.StatusServiceUnavailable, "webhook without an origin", err)
		return d, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, rc.config.MaxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit))
		return d, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read")
		return d, false
	}
	signed, err := Verify(r.Header, body, origin.Secrets, rc.config.Tolerance)
	if wrong := (*VerifyError)(nil); errors.As(err, &wrong) {
		refuse(w, http.StatusUnauthorized, wrong.Error())
		return d, false
	}
	if err != nil {
		rc.broken(w, r, http.StatusInternalServerError, "webhook not verified", err)
		return d, false
	}
	return Delivery{Tenant: origin.Tenant, Source: origin.Source, Signed: signed, Header: r.Header, Body: body}, true
}

// once claims the id, and has the webhook recorded if it is new, in one transaction.
func (rc *Receiver) once(ctx context.Context, d *Delivery) (result ledger.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, rc.config.RecordTimeout)
	defer cancel()
	request := ledger.Request{Tenant: d.Tenant, Scope: d.Source, Key: d.ID, Digest: ledger.DigestOf(d.Body)}
	for range recordTries {
		d.Answer, d.committed, d.recorded = Answer{}, nil, false
		result = ledger.Result{}
		err = rc.ledger.InTx(ctx, func(tx db.Tx) (err error) {
			if result, err = rc.ledger.Claim(ctx, tx, request); err != nil || result.Status != ledger.Claimed {
				return err
			}
			d.recorded = true
			if err := rc.record(ctx, tx, d); err != nil {
				return err
			}
			answer, err := d.Answer.encode()
			if err != nil {
				return err
			}
			return rc.ledger.Complete(ctx, tx, result.Claim, answer)
		})
		if !errors.Is(err, db.ErrRetry) || ctx.Err() != nil {
			break
		}
	}
	return result, err
}

// encode fills in the default, and gives what is stored.
func (a *Answer) encode() ([]byte, error) {
	switch {
	case a.Status == 0 && len(a.Body) == 0:
		a.Status = http.StatusNoContent
	case a.Status == 0:
		a.Status = http.StatusOK
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

func (a *Answer) check() error {
	if a.Status < 200 || a.Status > 499 {
		return fmt.Errorf("the answer's status is %d, not between 200 and 499", a.Status)
	}
	return nil
}

func (a *Answer) write(w http.ResponseWriter) {
	if a.ContentType != "" {
		w.Header().Set("Content-Type", a.ContentType)
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may have gone
}

func (rc *Receiver) replay(w http.ResponseWriter, r *http.Request, stored []byte) {
	var a Answer
	err := json.Unmarshal(stored, &a)
	if err == nil {
		err = a.check()
	}
	if err != nil {
		rc.broken(w, r, http.StatusInternalServerError, "stored answer not replayed", err)
		return
	}
	w.Header().Set(Replayed, "true")
	a.write(w)
}

// broken answers what is not the sender's fault, and tells him nothing of it.
func (rc *Receiver) broken(w http.ResponseWriter, r *http.Request, status int, what string, err error) {
	box := rc.ledger.Box()
	box.Logger().ErrorContext(r.Context(), what, slog.String("error", box.Redacted(err.Error())))
	refuse(w, status, "try again")
}

// refuse is an answer of the receiver's own (RFC 9457).
func refuse(w http.ResponseWriter, status int, title string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": title, "status": status})
}
