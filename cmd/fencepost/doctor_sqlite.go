package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A log that has grown so long was kept from being moved into the file, by a reader that did not end.
const logWarning, logCritical = 256 << 20, 4 << 30

// isSQLite reports whether the version is that of SQLite, which has neither roles nor dead rows.
func isSQLite(version string) bool { return strings.HasPrefix(version, "SQLite ") }

func (d *doctor) onSQLite() bool { return isSQLite(d.facts["setting"]["server_version"]) }

// serverName is a server's version with its name, which that of PostgreSQL lacks.
func serverName(version string) string {
	if isSQLite(version) {
		return version
	}
	return "PostgreSQL " + version
}

// heading begins a report on an installation: which it is, and of SQLite in which file.
func heading(schema, version, file string) string {
	if file != "" {
		file = ", " + file
	}
	return fmt.Sprintf("schema %s, %s%s", schema, serverName(version), file)
}

// file looks at the size of the file, of what is free in it, and of its log.
func (d *doctor) file() finding {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(d.facts["setting"][name], 10, 64) // absent is zero
		return n
	}
	size := number("page_size")
	f := found("file", levelOf(number("log_bytes"), logWarning, logCritical), "%s, %s of it free for new rows, and %s of log",
		mebibytes(number("page_count")*size), mebibytes(number("freelist_count")*size), mebibytes(number("log_bytes")))
	if f.Level != levelOK {
		f.Details = []string{"some process keeps a read transaction open, or did: end it, and the log is moved into the file (PRAGMA wal_checkpoint(TRUNCATE))"}
	}
	return f
}

func mebibytes(bytes int64) string { return thousands((bytes+1<<20-1)>>20) + " MiB" }
