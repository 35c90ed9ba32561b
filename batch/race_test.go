//go:build race

package batch_test

func init() { usualRows = 600 }
