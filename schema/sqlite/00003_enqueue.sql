-- Enqueue for programs in any language: SQLite has no functions of its own, so the number alone is kept.
-- Locks: none. Old and new binaries: the same tables for both.

-- +goose NO TRANSACTION
-- +goose Up

SELECT 1;

-- +goose Down

SELECT 1;
