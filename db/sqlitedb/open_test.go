package sqlitedb_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/schema"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	_, err := sqlitedb.Open("shop.db", sqlitedb.Config{Synchronous: 7, BusyTimeout: time.Millisecond, Readers: -1})
	for _, field := range []string{"Config.Synchronous", "Config.BusyTimeout", "Config.Readers"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	for path, says := range map[string]string{
		"": "is not that of a file", ":memory:": "is not that of a file", "file:shop.db": "is not that of a file", "a\x00b": "is not that of a file",
		"sqlite:shop.db":          `give the path alone, "shop.db"`,
		"shop.db?mode=ro":         `give the path alone, "shop.db"`,
		"a?.db?_pragma=x(1)&y=2":  `give the path alone, "a?.db"`,
		"sqlite:shop.db?mode=rwc": "give the path alone",
	} {
		if _, err := sqlitedb.Open(path, sqlitedb.Config{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("path %q: %v", path, err)
		}
	}
	if _, err := sqlitedb.New(nil, sqlitedb.Config{}); err == nil {
		t.Error("a nil pool was taken")
	}
}

// Every connection that Open makes, the one that writes and those that read, has the settings that the promise needs.
func TestC62OpenSetsEveryConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config      sqlitedb.Config
		synchronous string
	}{"full": {sqlitedb.Config{}, "full"}, "normal": {sqlitedb.Config{Synchronous: sqlitedb.Normal}, "normal"}} {
		path := filepath.Join(t.TempDir(), "shop.db")
		store, err := sqlitedb.Open(path, c.config)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
			t.Fatal(err)
		}
		facts, err := store.ReadSurroundings(t.Context(), db.ReadSurroundingsParams{})
		if err != nil {
			t.Fatal(err)
		}
		reads := map[string]string{}
		for _, fact := range facts {
			reads[fact.Name] = fact.Value
		}
		if reads["journal_mode"] != "wal" || reads["busy_timeout"] != "10000" || reads["synchronous"] != c.synchronous {
			t.Errorf("%s: a reader has %v", name, reads)
		}
		var journal string
		var timeout, synchronous int
		err = errors.Join(store.DB().QueryRow("PRAGMA journal_mode").Scan(&journal), store.DB().QueryRow("PRAGMA busy_timeout").Scan(&timeout),
			store.DB().QueryRow("PRAGMA synchronous").Scan(&synchronous))
		if want := map[string]int{"full": 2, "normal": 1}[name]; err != nil || journal != "wal" || timeout != 10_000 || synchronous != want {
			t.Errorf("%s: the writer has journal %s, timeout %d, synchronous %d, %v", name, journal, timeout, synchronous, err)
		}
	}
}

// A handle that was given is checked, each of its connections anew, and the error says what to add to its name.
func TestC62GivenHandlesAreChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	openStore(t, path)
	const complete = "_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)&_pragma=journal_mode(WAL)"
	for missing, name := range map[string]string{
		"":                            complete,
		"_pragma=busy_timeout(10000)": strings.Replace(complete, "busy_timeout(10000)", "busy_timeout(999)", 1),
		"_pragma=synchronous(2)":      strings.Replace(complete, "FULL", "NORMAL", 1),
		"_pragma=journal_mode(WAL)":   strings.Replace(complete, "WAL", "DELETE", 1),
	} {
		file := path
		if strings.Contains(name, "DELETE") { // which others must not be in the way of
			file = filepath.Join(t.TempDir(), "shop.db")
			pool, err := sql.Open("sqlite", file)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(schema.Up(t.Context(), pool, schema.Config{Dialect: schema.SQLite}), pool.Close()); err != nil {
				t.Fatal(err)
			}
		}
		pool, err := sql.Open("sqlite", "file:"+file+"?"+name)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		store, err := sqlitedb.New(pool, sqlitedb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.RegisterWorker(t.Context(), db.RegisterWorkerParams{Name: "w"})
		if missing == "" && err != nil || missing != "" && (!errors.Is(err, db.ErrDenied) || !strings.Contains(err.Error(), missing)) {
			t.Errorf("%s: %v", name, err)
		}
		ran := false
		err = sqlitedb.InTx(t.Context(), store, nil, func(*sqlitedb.BoxTx) error { ran = true; return nil })
		if ran != (missing == "") || (err == nil) != ran {
			t.Errorf("%s: InTx ran %t, %v", name, ran, err)
		}
	}
}

// Of the connections of one handle each is looked at, whatever another was like: what comes to the good one works, what comes to the bad one is
// refused.
func TestC62OneBadConnection(t *testing.T) {
	t.Parallel()
	store := givenStore(t, filepath.Join(t.TempDir(), "shop.db"))
	store.DB().SetMaxOpenConns(2)
	var held [2]*sql.Conn
	for i := range held {
		var err error
		if held[i], err = store.DB().Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := held[1].ExecContext(t.Context(), "PRAGMA synchronous = OFF"); err != nil {
		t.Fatal(err)
	}
	for i, refused := range []bool{false, true, false} {
		free := &held[i%2]
		if err := (*free).Close(); err != nil {
			t.Fatal(err)
		}
		ran := false
		_, read := store.ReadVersion(t.Context())
		_, written := store.RegisterWorker(t.Context(), db.RegisterWorkerParams{Name: "w"})
		in := sqlitedb.InTx(t.Context(), store, nil, func(*sqlitedb.BoxTx) error { ran = true; return nil })
		for _, err := range []error{read, written, in} {
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "_pragma=synchronous(1)") || ran == refused {
				t.Errorf("connection %d: %v, InTx ran %t", i%2, err, ran)
			}
		}
		var err error
		if *free, err = store.DB().Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range held {
		conn.Close()
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path   string
		config sqlitedb.Config
		want   error
		says   string
	}{
		"a folder":         {dir, sqlitedb.Config{}, db.ErrDenied, "is a folder"},
		"another file":     {text, sqlitedb.Config{}, db.ErrDenied, "is no database of SQLite"},
		"no such file":     {filepath.Join(dir, "missing.db"), sqlitedb.Config{MustExist: true}, db.ErrDenied, "does not exist"},
		"no such folder":   {filepath.Join(dir, "missing", "shop.db"), sqlitedb.Config{}, db.ErrDenied, "is in a folder that does not exist"},
		"a file as folder": {filepath.Join(text, "shop.db"), sqlitedb.Config{}, db.ErrDenied, "is in a folder that does not exist"},
		"without tables":   {filepath.Join(dir, "empty.db"), sqlitedb.Config{}, db.ErrNoSchema, "is not migrated, it lacks the table outbox_"},
	} {
		store, err := sqlitedb.Open(c.path, c.config)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// A refusal names the file and says what to do, instead of that access is denied.
		refused := func(err error) bool {
			return errors.Is(err, c.want) && strings.Contains(err.Error(), c.says) && strings.HasPrefix(err.Error(), "sqlitedb: "+c.path+" ") &&
				!strings.Contains(err.Error(), c.want.Error()) && !strings.Contains(err.Error(), "preparing") &&
				(c.want != db.ErrNoSchema || strings.Contains(err.Error(), "`fencepost migrate --dsn sqlite:"+c.path+"`"))
		}
		if _, err := store.ReadVersion(t.Context()); !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := sqlitedb.InTx(t.Context(), store, nil, func(*sqlitedb.BoxTx) error { return nil }); !refused(err) {
			t.Errorf("%s: InTx: %v", name, err)
		}
		if err := store.DB().Ping(); c.want == db.ErrDenied && !refused(err) {
			t.Errorf("%s: its handle: %v", name, err)
		}
		store.Close()

		// A handle that was given knows no path.
		pool, err := sql.Open("sqlite", "file:"+c.path+"?mode=rw&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(1)")
		if err != nil {
			t.Fatal(err)
		}
		given, err := sqlitedb.New(pool, quick)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := given.ReadVersion(t.Context()); c.want == db.ErrNoSchema && !refused(err) || c.want == db.ErrDenied && (!errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), "sqlitedb: the file ")) {
			t.Errorf("%s, given: %v", name, err)
		}
		pool.Close()
	}
	if _, err := os.Stat(filepath.Join(dir, "missing.db")); !errors.Is(err, os.ErrNotExist) {
		t.Error("MustExist made the file")
	}
}

// A program learns that the tables are too old, not that there are none.
func TestOlderTables(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	tables := openStore(t, path).DB()
	for version := schema.Newest(); version > 0; version-- {
		if err := schema.Down(t.Context(), tables, schema.Config{Dialect: schema.SQLite}, version); err != nil {
			t.Fatal(err)
		}
		store, err := sqlitedb.Open(path, quick)
		if err != nil {
			t.Fatal(err)
		}
		if versions, err := store.ReadVersion(t.Context()); err != nil || len(versions) != 1 || versions[0] != version {
			t.Errorf("of version %d: %v, %v", version, versions, err)
		}
		store.Close()
	}
}
