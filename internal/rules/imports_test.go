// Package rules_test holds the project's own rules, those that no linter knows.
package rules_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/fencepost-go/fencepost"
)

// Who may import a package, by folder of this module. Users of the core must not link what they do not use.
var mayImport = map[string][]string{
	"github.com/jackc/pgx":         {"db/pgxdb", "cmd", "internal/pgtest", "internal/demo"},
	"github.com/lib/pq":            {"db/sqldb"},
	"github.com/pressly/goose":     {"schema"},
	"github.com/prometheus":        {"metrics"},
	"github.com/go-playground":     {"batch"},
	"go.opentelemetry.io/otel":     {"tracing"},
	"go.opentelemetry.io/otel/sdk": nil, // only tests
	"modernc.org/sqlite":           {"db/sqlitedb"},
	"pgregory.net/rapid":           nil, // only tests
	"github.com/standard-webhooks": nil, // only tests
	"testing":                      {"db/dbtest", "internal/badinput", "internal/pgtest", "outboxtest"},
}

// What a folder may import beside the standard library: the arrows of the design.
var onlyImports = map[string][]string{
	"db":             nil,
	"outbox":         {"db", "internal"},
	"sender":         {"outbox", "db", "internal"},
	"janitor":        {"outbox", "db", "internal"},
	"internal/memdb": {"db", "internal"},
	"metrics":        {"outbox", "github.com/prometheus/client_golang/prometheus"},
	"tracing":        {"outbox", "go.opentelemetry.io/otel"},
	"outboxtest":     {"sender", "outbox", "db", "internal"},
	"events/sse":     {"events", "outbox", "internal"},
	"batch":          {"sender", "outbox", "db", "internal", "github.com/go-playground/validator"},
	"ledger":         {"outbox", "db", "internal"},
	"webhook":        {"ledger", "outbox", "db", "internal"},
	"publish":        {"outbox"},

	"ledger/idempotency": {"ledger", "outbox", "db", "internal"},
}

// What a folder may link at all, however many imports lie between: the standard library, this module, and these.
var onlyLinks = map[string][]string{
	"outbox":     nil,
	"sender":     nil,
	"janitor":    nil,
	"outboxtest": nil,
	"ledger":     nil,
	"batch":      {"github.com/go-playground", "github.com/gabriel-vasile/mimetype", "github.com/leodido/go-urn", "golang.org/x"},
	"webhook":    nil,
	"publish":    nil,
	"metrics":    {"github.com/prometheus", "github.com/beorn7/perks", "github.com/cespare/xxhash", "github.com/munnerz/goautoneg", "golang.org/x/sys", "google.golang.org/protobuf"},
	"tracing":    {"go.opentelemetry.io", "github.com/cespare/xxhash", "github.com/go-logr"},

	"ledger/idempotency": nil,
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, pkg := range listPackages(t) {
		for _, imported := range pkg.Imports {
			for restricted, folders := range mayImport {
				if within(imported, restricted) && !withinAny(pkg.folder(), folders) {
					t.Errorf("%s imports %s, which is for %q and tests only", pkg.folder(), imported, folders)
				}
			}
			folders, limited := onlyImports[pkg.folder()]
			if limited && !standard(imported) && !withinAny(strings.TrimPrefix(imported, module+"/"), folders) {
				t.Errorf("%s imports %s; beside the standard library it may import only %q", pkg.folder(), imported, folders)
			}
		}
	}
}

// What a folder must not link: a program with one database does not carry the drivers of the others, and a migrator's are its caller's.
var neverLinks = map[string][]string{
	"db/pgxdb":    {"modernc.org", "github.com/lib/pq"},
	"db/sqldb":    {"modernc.org", "github.com/jackc"},
	"db/sqlitedb": {"github.com/jackc", "github.com/lib/pq"},
	"schema":      {"modernc.org", "github.com/jackc", "github.com/lib/pq"},
}

func TestLinkedPackages(t *testing.T) {
	t.Parallel()
	for _, pkg := range listPackages(t) {
		others, limited := onlyLinks[pkg.folder()]
		for _, linked := range pkg.Deps {
			if limited && !standard(linked) && !within(linked, module) && !withinAny(linked, others) {
				t.Errorf("%s links %s; beside the standard library and this module it may link only %q", pkg.folder(), linked, others)
			}
			if withinAny(linked, neverLinks[pkg.folder()]) {
				t.Errorf("%s links %s", pkg.folder(), linked)
			}
		}
	}
}

// A publisher is a module of its own, whose version and the library's are chosen apart: it stands on what is public.
func TestPublishersImportNoInternals(t *testing.T) {
	t.Parallel()
	for name, source := range sourceFiles(t, ".go") {
		if within(name, "publish") && bytes.Contains(source, []byte(`"`+module+`/internal/`)) {
			t.Errorf("%s imports an internal package", name)
		}
	}
}

type listedPackage struct {
	ImportPath    string
	Imports, Deps []string // without those of tests
}

func (p listedPackage) folder() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	list.Dir = root
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &problems)
	}
	var packages []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listedPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, pkg)
	}
}

// standard reports whether the path is one of the standard library, whose first element never has a dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// within reports whether the path is the folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func withinAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return within(path, folder) })
}
