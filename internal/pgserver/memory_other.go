//go:build !linux

package pgserver

// inMemory returns no folder here.
func inMemory() string { return "" }
