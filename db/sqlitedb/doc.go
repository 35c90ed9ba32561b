// Package sqlitedb is the store on embedded SQLite, through modernc.org/sqlite, which is pure Go: for a service of one machine, a test suite,
// or a first look, with no server. It keeps the promises of the other drivers; docs/sqlite.md says what one file cannot do.
//
// The tables stand in the application's own file, beside its own, so that a change and its effects commit together. One transaction writes at a
// time, whatever process it is in; readers never wait. Keep transactions short: while one is open no sender can lease, renew or settle, and
// an operation of the box called inside one that waits for the write lock waits for itself.
//
// Several processes may use one file on a local disk. Network file systems do not lock well enough.
package sqlitedb
