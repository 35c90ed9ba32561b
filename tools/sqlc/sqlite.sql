-- What every file of SQLite has and sqlc does not know: its catalogue, and pragmas as tables. For sqlc alone; nothing runs it.
CREATE TABLE sqlite_schema (type TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE pragma_database_list (name TEXT NOT NULL, file TEXT NOT NULL);
CREATE TABLE pragma_journal_mode (journal_mode TEXT NOT NULL);
CREATE TABLE pragma_synchronous (synchronous INTEGER NOT NULL);
CREATE TABLE pragma_busy_timeout (timeout INTEGER NOT NULL);
CREATE TABLE pragma_page_size (page_size INTEGER NOT NULL);
CREATE TABLE pragma_page_count (page_count INTEGER NOT NULL);
CREATE TABLE pragma_freelist_count (freelist_count INTEGER NOT NULL);
CREATE TABLE sqlite_sequence (name TEXT NOT NULL, seq INTEGER NOT NULL);
