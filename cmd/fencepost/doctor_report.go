package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// A pathReport says what happens to an effect.
type pathReport struct {
	Schema   string            `json:"schema"`
	Sections []pathSection     `json:"sections"`
	Settings map[string]string `json:"settings"`
}

type pathSection struct {
	Name string   `json:"name"`
	Says []string `json:"says"`
}

// report prints what an effect goes through. What services set for themselves is not in the database; their defaults are given.
func (d *doctor) report(cmd *cobra.Command, schema string) error {
	consumer, err := d.box.Consumer("report", "report", outbox.Policy{})
	if err != nil {
		return err
	}
	policy, setting := consumer.Policy(), d.facts["setting"]
	tables, commits, credential := schema+".", "", ""
	if d.onSQLite() {
		tables = schema + "_"
		commits = fmt.Sprintf("journal_mode %s, synchronous %s", setting["journal_mode"], setting["synchronous"])
		credential = "the right to write the file is the credential"
	} else {
		standbys := "no standby is waited for"
		if names := setting["synchronous_standby_names"]; names != "" {
			standbys = "a commit waits for " + names
		}
		problems := "may lease and settle, and no more than it should"
		if list := d.role.Problems(); len(list) > 0 {
			problems = strings.Join(list, ", ")
		}
		commits = fmt.Sprintf("fsync %s, synchronous_commit %s, full_page_writes %s, %s",
			setting["fsync"], setting["synchronous_commit"], setting["full_page_writes"], standbys)
		credential = fmt.Sprintf("the database role is the credential; this one, %s, %s", setting["role"], problems)
	}
	return output(cmd, pathReport{Schema: schema, Settings: setting, Sections: []pathSection{
		{"path", []string{
			"a producer's own transaction writes the effect to " + tables + "message and " + tables + "queue, and its commit makes it a message",
			"a sender leases it, calls the handler with no connection held, and settles it: the queue row goes, and " + tables + "settlement keeps what came of it",
			"at least once: a handler may run again after a crash, so hand the key downstream",
		}},
		{"effect key", []string{
			"(tenant, consumer, key) is unique for as long as the message is kept",
			"the same key with the same content is a duplicate: the receipt names the first message",
			"the same key with other content is refused (ErrKeyConflict), and the caller's transaction goes on",
		}},
		{"lease", []string{
			fmt.Sprintf("30s unless the sender says otherwise, at most %v, renewed at a third of it, by the database's clock", db.LongestLease),
			"a lease that is lost (crash, no connection, no renewal) runs out, another sender takes over, and the attempt stays spent",
			"fence: a settle needs the random token of the current lease and is stale without it; (message id, epoch) is the fence to hand downstream",
		}},
		{"retries", []string{
			fmt.Sprintf("%d attempts, the first retry after %v, doubling up to %v, up to %d %% shorter, for at most %v (a service's policy may say otherwise)",
				policy.MaxAttempts, policy.InitialDelay, policy.MaxDelay, policy.Jitter, policy.MaxAge),
			"then dead, cause attempts, age or exhausted; at once dead, cause permanent or moot, where the handler says so",
			"an outcome nobody knows is reconciled where the kind can, and else parked until an operator resolves it",
		}},
		{"ends", []string{
			"delivered, dead, cancelled by an operator, or expired (never leased within its age)",
			"only a replay leaves dead, and only a purge removes what has ended",
		}},
		{"store", []string{
			strings.TrimSpace(serverName(setting["server_version"]) + " " + setting["path"]),
			commits,
		}},
		{"identity", []string{
			credential,
			"the name of a worker is a label, the token of a lease a fence: neither is a credential",
		}},
	}})
}

func (r pathReport) text(p *page) {
	for _, section := range r.Sections {
		for i, line := range section.Says {
			name := section.Name
			if i > 0 {
				name = ""
			}
			p.linef("%-12s%s", name, line)
		}
	}
}
