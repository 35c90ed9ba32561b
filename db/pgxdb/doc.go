// Package pgxdb is the store on PostgreSQL through pgx/v5.
//
// Every statement of the store's own runs in its own READ COMMITTED transaction with the planner settings that keep its plan right, sent as
// one pipelined batch: one round trip. Effects are recorded in the caller's transaction, handed over with Tx, or with InTx, which begins
// and commits one and then wakes the senders.
//
// The pool may use any query execution mode of pgx. Behind a transaction pooler older than pgbouncer 1.21 set
// DefaultQueryExecMode to QueryExecModeExec.
package pgxdb
