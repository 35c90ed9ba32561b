package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

// addPolicy adds the flags of a consumer's policy, whose defaults are the library's.
func addPolicy(cmd *cobra.Command, policy *outbox.Policy) {
	*policy = outbox.Policy{MaxAttempts: 12, InitialDelay: 30 * time.Second, MaxDelay: 15 * time.Minute, Jitter: 20, MaxAge: 24 * time.Hour}
	flags := cmd.Flags()
	flags.Var(intFlag{&policy.MaxAttempts, 1, 10_000}, "max-attempts", "attempts of a message")
	flags.Var(durationFlag{&policy.InitialDelay, time.Microsecond, longestAge}, "initial-delay",
		"delay after the first failed attempt; it doubles with each further one")
	flags.Var(durationFlag{&policy.MaxDelay, time.Microsecond, longestAge}, "max-delay", "longest delay")
	flags.Var(noneFlag{intFlag{&policy.Jitter, 1, 100}, func() { policy.Jitter = outbox.NoJitter }}, "jitter",
		"by how many percent a delay is shortened at most, or none")
	flags.Var(noneFlag{durationFlag{&policy.MaxAge, time.Millisecond, longestAge}, func() { policy.MaxAge = outbox.NoMaxAge }}, "max-age",
		"age at which a message dies, or none; what its producer gave it counts too")
}
