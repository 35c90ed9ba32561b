package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// progress tells on stderr how far a long run has come, now and then.
type progress struct {
	out   io.Writer
	every time.Duration
	said  time.Time
}

// progressEvery is a variable for the tests, whose expectations a slow machine must not fail.
var progressEvery = time.Second

func newProgress(cmd *cobra.Command) *progress {
	return &progress{out: cmd.ErrOrStderr(), every: progressEvery, said: time.Now()}
}

func (p *progress) sayf(format string, args ...any) {
	if time.Since(p.said) >= p.every {
		p.said = time.Now()
		fmt.Fprintf(p.out, format+"\n", args...)
	}
}
