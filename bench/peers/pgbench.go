package peers

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/bench/contest"
	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/internal/pgserver"
)

// Pgbench puts messages in by fencepost's own statement, and nobody performs them.
type Pgbench struct {
	program, dsn string
	db           *sql.DB
}

func (*Pgbench) Name() string { return "pgbench" }
func (*Pgbench) Settings() string {
	return "PostgreSQL's pgbench with fencepost's Enqueue statement of one message between BEGIN and COMMIT, protocol prepared, a client for each producer: nobody performs them"
}

func (p *Pgbench) Open(ctx context.Context, dsn string) (err error) {
	// PostgreSQL's folder of programs comes first; some packages have none in it.
	if dir, err := pgserver.Binaries(); err == nil {
		p.program, _ = exec.LookPath(filepath.Join(dir, "pgbench"))
	}
	if p.program == "" {
		if p.program, err = exec.LookPath("pgbench"); err != nil {
			return fmt.Errorf("%w: %w", contest.ErrAbsent, err)
		}
	}
	p.dsn = dsn
	p.db, err = openSchema(ctx, dsn)
	return err
}

func (p *Pgbench) Fill(ctx context.Context, _ int) error { return empty(ctx, p.db) }

func (p *Pgbench) Stream(ctx context.Context, producers int, span time.Duration) (messages int, err error) {
	script, err := floor.Script()
	if err != nil {
		return 0, err
	}
	clients := strconv.Itoa(producers)
	command := exec.CommandContext(ctx, p.program, "--no-vacuum", "--protocol=prepared", "--client="+clients, "--jobs="+clients,
		fmt.Sprintf("--time=%.0f", span.Seconds()), "--define=number=0", "--define=payload="+strings.Repeat("x", payload), "--file=/dev/stdin", p.dsn)
	command.Stdin = strings.NewReader(script)
	out, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	return processed(string(out))
}

var transactions = regexp.MustCompile(`number of transactions actually processed: (\d+)`)

// processed reads how many transactions pgbench reports.
func processed(report string) (int, error) {
	match := transactions.FindStringSubmatch(report)
	if match == nil {
		return 0, fmt.Errorf("pgbench says no number of transactions:\n%s", report)
	}
	return strconv.Atoi(match[1])
}

func (p *Pgbench) Close(context.Context) error { return p.db.Close() }
