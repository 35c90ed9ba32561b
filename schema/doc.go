// Package schema installs and upgrades fencepost's tables in a PostgreSQL database or a file of SQLite.
//
// [Up] applies the migrations that a database lacks, [Down] rolls them back, [Status] lists them, [Print] writes the SQL for
// those who run it themselves, and [Grants] the SQL of roles. Each takes a *sql.DB of any PostgreSQL driver and one [Config].
// For SQLite Config.Dialect is [SQLite] and the *sql.DB one of modernc.org/sqlite, such as sqlitedb's Store.DB; section SQLite says
// what differs. The package links no driver.
//
// Everything lives in one schema, called outbox or as Config.Name says; several installations under different names may
// share a database. Which versions are applied is kept in the table schema_version of that schema. Nothing depends on
// search_path.
//
// # Many processes, one database
//
// Up may be called by all replicas of a service as they start: a lock, held in a transaction so that it also works through
// a pooler and ends with its process, lets one at a time change the schema; the others wait, find the work done and
// return. It needs a connection beside the one that migrates: a pool of one is refused, and a pooler must have one more
// server connection than there are replicas that upgrade at once. Where the schema is current nobody takes the lock.
//
// # Running systems
//
// A statement that changes a table waits for those who use it, and everybody else queues up behind it. So each wait of a
// migration ends after Config.LockTimeout with an [ErrBlocked] that names who was in the way. Each migration is one
// transaction: a failed one has changed nothing, and calling again goes on where it stopped. The comment at the top of a
// migration says which tables it locks and whether older programs may keep running beside it. Its number says so, too: one
// below the next round hundred only adds, and programs that do not know it go on, Up included; one that takes more away than that
// is numbered by the hundred, and they refuse it (db.RefusedSchema).
//
// # SQLite
//
// The tables stand in the application's own file under the prefix outbox_, the versions in outbox_schema_version: one installation a
// file. Up and Down are one transaction each, which holds the file's write lock: they need one connection, and other processes that
// migrate or write wait for them, and they for those, up to Config.LockTimeout. There are no roles, so [Grants] is refused.
//
// # What it does not own
//
// The package makes no role and grants nothing: who may do what is the administrator's choice, and [Grants] writes SQL that
// fits. Up needs the right to create a schema only where the schema does not exist, and no rights to change anything where
// the version is current. A sender or producer does not need it at run time: package outbox checks by itself that it fits
// the schema it finds.
package schema
