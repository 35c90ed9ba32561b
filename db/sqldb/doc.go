// Package sqldb is the store on PostgreSQL through database/sql: with lib/pq, or with pgx's stdlib driver.
//
// Every statement of the store's own runs in its own READ COMMITTED transaction with the planner settings that keep its plan right; that
// takes about four round trips, where pgxdb takes one. Effects are recorded in the caller's transaction, handed over with Tx, or with
// InTx, which begins and commits one and then wakes the senders.
//
// lib/pq sends a parse with each call, so the store keeps prepared statements. Behind a transaction pooler older than pgbouncer 1.21 set
// Config.Statements to Unnamed and, with lib/pq, binary_parameters=yes in the connection string.
//
// Prepared statements live as long as their connection, and database/sql keeps two idle ones unless SetMaxIdleConns says more: set it to
// what SetMaxOpenConns allows, or busy callers connect, prepare and plan again and again.
package sqldb
