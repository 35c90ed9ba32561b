package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newWorker() *cobra.Command {
	return newGroup("worker", "Let named workers in and shut them out",
		`Let named workers in and shut them out. A named worker proves itself with a credential before it leases anything, leases only for the
consumers and tenants of its credential, and stops within a renewal when it is revoked.

What it is not: who can log in with the database role of a sender can write what senders write, named or not. The role
is what keeps others out; a credential says which worker this is, and lets one of many be stopped.`,
		"  fencepost worker list",
		newWorkerAdd(), newWorkerList(), newWorkerRevoke())
}

// oneName refuses all but one argument, the name of a worker.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes the name of one worker; see %s --help", cmd.Name(), cmd.CommandPath())
	}
	return nil
}

func newWorkerAdd() *cobra.Command {
	var c connection
	var by acting
	var consumers, tenants []string
	out := ""
	cmd := &cobra.Command{
		Use:   "add NAME --consumer C",
		Short: "Let a named worker in, and print its credential",
		Long: `Let a named worker in for consumers and, with --tenant, for some tenants alone, and print its credential: one line, shown
this once and stored nowhere. Keep it where the worker's other secrets are, as in ` + credentialVariable + ` of
fencepost work; --out writes it to a new file that only you can read.

A name is given once, also when its worker is revoked, so that what was done under it stays told apart. To change a
secret add another name, start the worker under it, then revoke the first.`,
		Example: `  fencepost worker add warehouse-1 --consumer shop --reason "new host"
  fencepost worker add acme-1 --consumer shop --tenant acme --reason "asked by acme" --out acme-1.credential`,
		Args: oneName,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	by.addFlags(cmd)
	cmd.Flags().StringArrayVar(&consumers, "consumer", nil, "a consumer to lease for, * for any; required, may be repeated")
	cmd.Flags().StringArrayVar(&tenants, "tenant", nil, "only this tenant; may be repeated (default all)")
	cmd.Flags().Var(textFlag{&out}, "out", "write the credential to this file, which must not be there, in place of printing it")
	completeFiles(cmd, "out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		by, err := by.by()
		if err == nil && len(consumers) == 0 {
			err = usagef("--consumer is required: for whom the worker may lease")
		}
		if err != nil {
			return err
		}
		if len(tenants) == 0 {
			tenants = []string{outbox.Any}
		}
		var permits []outbox.Permit
		for _, consumer := range consumers {
			for _, tenant := range tenants {
				permits = append(permits, outbox.Permit{Consumer: consumer, Tenant: tenant})
			}
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			report := addedWorker{Name: args[0], Permits: newPermits(permits), File: out}
			credential, err := addWorker(ctx, box, report, permits, by)
			if err != nil {
				return err
			}
			if out == "" {
				report.Credential = credential.Reveal()
			}
			return output(cmd, report)
		})
	}
	return cmd
}

// addWorker lets a worker in whose credential is written to the report's file, if it has one: the file comes first, lest nothing have what cannot be
// had again.
func addWorker(ctx context.Context, box *outbox.Box, r addedWorker, permits []outbox.Permit, by outbox.By) (credential outbox.Credential, err error) {
	keep := func(string) error { return nil }
	if r.File != "" {
		file, err := os.OpenFile(r.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return credential, usagef("cannot make the file of --out: %v", withoutPath(err))
		}
		kept := false
		defer func() {
			if file.Close(); !kept {
				_ = os.Remove(r.File)
			}
		}()
		keep = func(text string) error {
			_, err := file.WriteString(text + "\n")
			err = errors.Join(err, file.Sync())
			kept = err == nil
			return withoutPath(err)
		}
	}
	credential, added, err := box.AddCredential(ctx, r.Name, permits, by)
	if err == nil && !added {
		err = notDonef("this name was given before, and a name is given once: take another")
	}
	if err != nil {
		return credential, err
	}
	if err := keep(credential.Reveal()); err != nil {
		_, revoking := box.RevokeCredential(ctx, r.Name, by)
		return credential, errors.Join(fmt.Errorf("the credential could not be written, so it is revoked: %w", err), revoking)
	}
	return credential, nil
}

// withoutPath is an error of a file without its path, which may be something else that went to the wrong place.
func withoutPath(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

type permit struct {
	Consumer string `json:"consumer"`
	Tenant   string `json:"tenant"`
}

func newPermits(permits []outbox.Permit) []permit {
	list := make([]permit, len(permits))
	for i, p := range permits {
		list[i] = permit(p)
	}
	return list
}

type addedWorker struct {
	Name       string   `json:"name"`
	Permits    []permit `json:"permits"`
	Credential string   `json:"credential,omitempty"`
	File       string   `json:"file,omitempty"`
}

func (r addedWorker) text(p *page) {
	if r.File != "" {
		p.linef("%s is let in; its credential is in %s", r.Name, r.File)
	} else {
		p.linef("%s", r.Credential) // nothing else, for whoever pipes it on
	}
}

func newWorkerList() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the named workers, those that are revoked included",
		Long:    "List the named workers, for which consumers and tenants they are let in, and who let them in or revoked them. Their secrets are not there to be shown.",
		Example: "  fencepost worker list --json",
		Args:    noArguments,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			records, err := box.Credentials(ctx)
			if err != nil {
				return err
			}
			return output(cmd, newWorkersReport(records))
		})
	}
	return cmd
}

type workersReport struct {
	Workers []namedWorker `json:"workers"`
}

type namedWorker struct {
	Name    string     `json:"name"`
	Permits []permit   `json:"permits"`
	Added   workerAct  `json:"added"`
	Revoked *workerAct `json:"revoked"` // null = it is let in
}

type workerAct struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

func newWorkersReport(records []outbox.CredentialRecord) workersReport {
	r := workersReport{Workers: []namedWorker{}}
	for _, record := range records {
		w := namedWorker{Name: record.Name, Permits: newPermits(record.Permits), Added: workerAct{record.AddedAt, record.Added.Actor, record.Added.Reason}}
		if !record.RevokedAt.IsZero() {
			w.Revoked = &workerAct{record.RevokedAt, record.Revoked.Actor, record.Revoked.Reason}
		}
		r.Workers = append(r.Workers, w)
	}
	return r
}

func (r workersReport) text(p *page) {
	if len(r.Workers) == 0 {
		p.linef("no worker has a name")
		return
	}
	var rows [][]string
	for _, w := range r.Workers {
		var permits []string
		for _, one := range w.Permits {
			tenant := one.Tenant
			if tenant == "" {
				tenant = `""`
			}
			permits = append(permits, one.Consumer+" "+tenant)
		}
		revoked := "-"
		if w.Revoked != nil {
			revoked = w.Revoked.String()
		}
		rows = append(rows, []string{w.Name, strings.Join(permits, ", "), w.Added.String(), revoked})
	}
	p.table([]string{"WORKER", "CONSUMER AND TENANT", "ADDED", "REVOKED"}, rows)
}

func (a workerAct) String() string {
	return fmt.Sprintf("%s by %s: %s", instant(a.At), a.Actor, a.Reason)
}

func newWorkerRevoke() *cobra.Command {
	var c connection
	var by acting
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Shut a named worker out, also while it runs",
		Long: `Shut a named worker out for good. One that runs leases nothing more from its next renewal on, or within 10 seconds when that
is sooner: it ends its handlers, gives back what was not performed, records what was, and stops. One that cannot reach
the database keeps no message longer than its lease.`,
		Example: `  fencepost worker revoke worker-1 --reason "its host is gone"`,
		Args:    oneName,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	by.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		by, err := by.by()
		if err != nil {
			return err
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			revoked, err := box.RevokeCredential(ctx, args[0], by)
			if err == nil && !revoked {
				err = notDonef("no worker of this name is let in")
			}
			if err != nil {
				return err
			}
			return output(cmd, revokedWorker{Name: args[0], Revoked: true})
		})
	}
	return cmd
}

type revokedWorker struct {
	Name    string `json:"name"`
	Revoked bool   `json:"revoked"`
}

func (r revokedWorker) text(p *page) { p.linef("revoked %s", r.Name) }
