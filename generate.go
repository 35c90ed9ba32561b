// Package fencepost is the root of a library for durable effects: a service records a side effect in the database
// transaction of the change that causes it, and a sender performs it later, at least once. The library is in the packages
// below, outbox first; this one holds the directives that regenerate code from the statements under queries.
package fencepost

// The C parser of sqlc needs a compiler and minutes; without cgo it uses the same parser compiled to WebAssembly.
//go:generate env CGO_ENABLED=0 go tool -modfile=tools/go.mod sqlc generate
//go:generate go run ./internal/storegen queries/postgres db/pgxdb/internal/gen db db/pgxdb db/sqldb
//go:generate go run ./internal/reqdoc
