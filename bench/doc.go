// Package bench measures what a driver adds to the work of the database itself. See docs/benchmarks.md.
package bench
