package pgtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/schema"
)

// templateLock is the advisory lock under which processes build the template, one after the other.
const templateLock = 0x66656e6365

// template returns the name of a migrated database to clone, which the first process that needs it builds. It is named
// after the migrations, so that a server that lives on gets a new one when they change.
var template = sync.OnceValues(func() (string, error) {
	if shared == nil {
		return "", errors.New("TestMain does not call pgtest.Main")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	sum, err := checksum(schema.FS)
	if err != nil {
		return "", err
	}
	name := "fencepost_template_" + sum
	conn, err := shared.db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", templateLock); err != nil {
		return "", err
	}
	err = build(ctx, conn, name)
	_, unlockErr := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", templateLock)
	return name, errors.Join(err, unlockErr)
})

// build migrates a new database and only then marks it as a template, so that one whose builder died half-way is told
// from a finished one. Nobody may connect to a finished one: CREATE DATABASE fails when its template is in use.
func build(ctx context.Context, conn *sql.Conn, name string) error {
	var ready bool
	err := conn.QueryRowContext(ctx, "SELECT datistemplate FROM pg_database WHERE datname = $1", name).Scan(&ready)
	if err != nil && !errors.Is(err, sql.ErrNoRows) || ready {
		return err
	}
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)",
		"CREATE DATABASE " + name + " TEMPLATE template0",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if err := migrate(ctx, shared.dsn(name)); err != nil {
		return err
	}
	if err := warm(ctx, shared.dsn(name)); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true ALLOW_CONNECTIONS false")
	return err
}

func migrate(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	return errors.Join(schema.Up(ctx, db, schema.Config{}), db.Close())
}

// warm connects once: the first connection after a change of the catalogue leaves a cache for all others, which a copy inherits.
func warm(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), db.Close())
}

// checksum returns a short digest of the files' names and contents.
func checksum(files fs.FS) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), err
}
