package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fencepost-go/fencepost/internal/sidecar"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A way is how work performs messages.
type way interface {
	// addFlags adds the flag that chooses the way, and those that go with it.
	addFlags(*pflag.FlagSet)
	// name is that flag, and chosen whether it was given.
	name() string
	chosen() bool
	open(opening) (performer, error)
}

// An opening is what a way is made ready with.
type opening struct {
	args    []string // that are left on the command line
	lease   time.Duration
	secrets []string            // texts that must not get out
	redact  func(string) string // takes them out of a text

	timeout          time.Duration // of one message; 0 is the way's own
	unknownOnTimeout bool
}

// A performer is a way that is ready.
type performer struct {
	do       func(context.Context, outbox.Message) (string, error)
	grace    time.Duration   // it needs to end
	timesOut bool            // it sees to the timeout itself
	broken   <-chan struct{} // closed when it cannot go on
	close    func()
}

// working is a sender of one consumer.
type working struct {
	connection
	consumer, target string
	kinds            []string
	scope            func() outbox.Scope
	policy           outbox.Policy
	config           sender.Config
	handler          sender.Handler
	once             bool
	credentialFile   string
	ways             []way
	own              []*pflag.FlagSet // of each way
}

func newWork() *cobra.Command {
	w := working{ways: []way{&executing{}, &posting{}}}
	cmd := &cobra.Command{
		Use:   "work --consumer C --target T --kind K {--exec COMMAND [ARGS…] | --post URL}",
		Short: "Perform messages by a command or a webhook, for services in any language",
		Long: `Perform the messages of a consumer, until Ctrl-C or SIGTERM: lease those that are due, run a command or post a webhook for
each, settle what came of it.

With --exec all that follows is the command and its arguments, so it comes last. The payload is on the command's standard input, the rest of the message in FENCEPOST_KEY, FENCEPOST_KIND, FENCEPOST_EPOCH and further variables
(docs/sidecar.md has them all). Its exit code says what came of the message:

  0        delivered
  65       permanent: dead at once
  69       unavailable: the target was not reached; tried again without spending an attempt
  others   tried again by the policy, 75 (EX_TEMPFAIL) among them; so is an end by a signal

The end of what it prints on stderr, at most 4 KiB, is the reason that is kept. When the lease is lost, the message cancelled
or paused, --timeout over or the worker told to stop, the command's process group is sent SIGTERM and, --grace later,
SIGKILL. It inherits the environment but for what may hold the worker's credentials: the variables FENCEPOST_… and PG…,
DATABASE_URL, and each that holds the connection string or its password.

With --post the payload is posted to the URL, byte for byte, signed by the Standard Webhooks specification (docs/webhooks.md);
webhook-id is the same at every attempt. What signs is in --secret-file or in ` + secretVariable + `, never on the command
line. A 2xx is delivered, 410 moot, 429 and 5xx are tried again, other 4xx permanent; --status changes that. No connection
spends no attempt. Addresses that are not public are refused: --allow 127.0.0.1 opens the machine's own.

A worker that was let in by fencepost worker add has its credential in --credential-file or in
` + credentialVariable + `, never on the command line. --name is its name then, and --tenant must stay within what it is for.

A line for each message that was settled is printed on stdout, with --json a JSON object; with --once, in the end, the
counts. What is wrong is logged on stderr.`,
		Example: `  fencepost work --consumer shop --target warehouse --kind ship --exec sh ship.sh --express
  fencepost work --consumer shop --target bank --kind charge --kind refund --slots 4 --timeout 1m --exec env LANG=C ./charge
  fencepost work --consumer shop --target warehouse --kind ship --once --json --exec sh ship.sh
  fencepost work --consumer shop --target crm --kind push --secret-file crm.secret --post https://crm.example/hooks --https-only
  fencepost work --consumer shop --target web --kind push --secret-file crm.secret --post http://127.0.0.1:9/push --allow 127.0.0.1`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              w.run,
	}
	w.addFlags(cmd)
	w.scope = addTenants(cmd)
	addPolicy(cmd, &w.policy)
	w.config = sender.Config{Slots: 16, Lease: 30 * time.Second, Poll: 500 * time.Millisecond}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.Var(textFlag{&w.consumer}, "consumer", "the consumer; required")
	flags.Var(textFlag{&w.target}, "target", "its target; required")
	flags.StringArrayVar(&w.kinds, "kind", nil, "a kind to perform; required, may be repeated")
	flags.Var(intFlag{&w.config.Slots, 1, sidecar.MaxSlots}, "slots", "how many messages to perform at once")
	flags.Var(durationFlag{&w.config.Lease, time.Second, time.Hour}, "lease", "for how long a message is leased; it is renewed while it is performed")
	flags.Var(durationFlag{&w.config.Poll, 100 * time.Millisecond, time.Hour}, "poll", "how often to look for due messages")
	flags.Var(durationFlag{&w.config.Drain, time.Millisecond, time.Hour}, "drain",
		"how long a stop waits before it ends what runs (default 10s or the lease, whichever is less)")
	flags.Var(durationFlag{&w.handler.Timeout, time.Millisecond, 12 * time.Hour}, "timeout", "how long performing a message may take (default no limit; with --post 20s, at most 1h)")
	flags.BoolVar(&w.handler.UnknownOnTimeout, "unknown-on-timeout", false, "after a timeout the outcome is unknown: the message is parked, not tried again")
	flags.BoolVar(&w.config.Listen, "listen", false, "be woken by notifications, over a connection of its own")
	flags.Var(textFlag{&w.config.Name}, "name", "the worker's name for operators (default the credential's or the host's)")
	flags.Var(textFlag{&w.credentialFile}, "credential-file", "the file of this worker's credential (default the environment variable "+credentialVariable+")")
	completeFiles(cmd, "credential-file")
	flags.BoolVar(&w.once, "once", false, "perform what is due and end")
	for _, way := range w.ways {
		own := pflag.NewFlagSet(way.name(), pflag.ContinueOnError)
		way.addFlags(own)
		flags.AddFlagSet(own)
		w.own = append(w.own, own)
	}
	return cmd
}

func (w *working) run(cmd *cobra.Command, args []string) error {
	way, err := w.check()
	if err != nil {
		return err
	}
	if w.config.Credential, err = w.credential(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // the heap is a few megabytes, which the default collects dozens of times a second
	}
	secrets, err := w.secrets(cmd)
	if err != nil {
		return err
	}
	secrets = append(secretsOfCredential(w.config.Credential), secrets...)
	redact := redactor(secrets)
	by, err := way.open(opening{args, w.config.Lease, secrets, redact, w.handler.Timeout, w.handler.UnknownOnTimeout})
	if err != nil {
		return err
	}
	defer by.close()
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	on, err := w.open(ctx, cmd.CommandPath())
	if err != nil {
		return err
	}
	defer on.close()
	out := newSettledLines(cmd)
	defer out.close()
	log := newLog(cmd)
	box, err := outbox.New(on.store, outbox.Config{MaxPayload: largestPayload, Redact: redact, Observer: out.observer(), Logger: log})
	if err != nil {
		return err
	}
	s, err := w.sender(box, by)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-by.broken:
			cancel(errBroken)
		case <-ctx.Done():
		}
	}()
	counts, err := w.perform(ctx, s)
	if err = errors.Join(err, out.close()); w.once {
		err = errors.Join(err, printCounts(cmd, counts))
	}
	if ctx.Err() != nil && err != nil {
		log.Error("the stop was not clean", "error", oneLine(err)) // of which an interruption's one line says nothing
	}
	if errors.Is(context.Cause(ctx), errBroken) {
		return errors.Join(errBroken, err)
	}
	return err
}

// errBroken ends a worker that could not end its commands if it were killed itself.
var errBroken = errors.New("the guard of the commands has ended, so nothing more is performed; start the worker again")

// check finds what is missing before anything is opened.
func (w *working) check() (way, error) {
	var chosen []way
	var names []string
	for _, way := range w.ways {
		if names = append(names, "--"+way.name()); way.chosen() {
			chosen = append(chosen, way)
		}
	}
	switch {
	case w.consumer == "" || w.target == "" || len(w.kinds) == 0:
		return nil, usagef("--consumer, --target and --kind are required")
	case len(chosen) != 1:
		return nil, usagef("give one of %s, which says how messages are performed", strings.Join(names, ", "))
	}
	var err error
	for i, own := range w.own {
		own.VisitAll(func(f *pflag.Flag) {
			if f.Changed && !w.ways[i].chosen() {
				err = usagef("--%s goes with %s", f.Name, names[i])
			}
		})
	}
	return chosen[0], err
}

func (w *working) sender(box *outbox.Box, by performer) (*sender.Sender, error) {
	consumer, err := box.Consumer(w.consumer, w.target, w.policy)
	if err != nil {
		return nil, err
	}
	config := w.config
	config.Scope = w.scope()
	config.Grace = by.grace
	config.Handlers = sender.Handlers{}
	for _, kind := range w.kinds {
		handler := w.handler
		if by.timesOut {
			handler.Timeout, handler.UnknownOnTimeout = 0, false
		}
		handler.DoResult = by.do
		config.Handlers[kind] = handler
	}
	return sender.New(box, consumer, config)
}

func (w *working) perform(ctx context.Context, s *sender.Sender) (sender.Counts, error) {
	if w.once {
		return s.RunOnce(ctx)
	}
	return sender.Counts{}, s.Run(ctx)
}

// newLog is what is wrong, for stderr.
func newLog(cmd *cobra.Command) *slog.Logger {
	if asJSON(cmd) {
		return slog.New(slog.NewJSONHandler(printableWriter{cmd.ErrOrStderr()}, nil))
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)) // which quotes what is not printable
}

// secrets are the texts that lead into the database.
func (w *working) secrets(cmd *cobra.Command) ([]string, error) {
	_, dsn := w.given()
	if _, isFile, err := w.file(); isFile || err != nil {
		return []string{dsn}, err
	}
	config, err := w.connection.config(cmd.CommandPath())
	if err != nil {
		return nil, err
	}
	return secretsOf(dsn, config.ConnConfig.Password), nil
}
