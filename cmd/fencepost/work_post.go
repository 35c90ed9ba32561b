package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish"
	"github.com/fencepost-go/fencepost/webhook"
)

// posting performs messages by posting them as signed webhooks.
type posting struct {
	url, secretFile string
	config          webhook.PosterConfig
}

// secretVariable holds what signs, where no file does: a command line is for everybody to see.
const secretVariable = "FENCEPOST_WEBHOOK_SECRET"

func (p *posting) addFlags(flags *pflag.FlagSet) {
	flags.Var(textFlag{&p.url}, "post", "perform by a signed webhook to this URL")
	flags.Var(textFlag{&p.secretFile}, "secret-file", "with --post, the file of the secrets that sign, one a line (default the environment variable "+secretVariable+")")
	flags.Var(networkFlag{&p.config.Allow}, "allow", "with --post, an address or network that may be posted to although it is not public; may be repeated")
	flags.BoolVar(&p.config.HTTPSOnly, "https-only", false, "with --post, refuse http")
	flags.Var(statusFlag{&p.config.Statuses}, "status", "with --post, what an answer means, as in 404=retry, or for a class, 4=retry; may be repeated")
}

func (p *posting) name() string { return "post" }
func (p *posting) chosen() bool { return p.url != "" }

func (p *posting) open(o opening) (performer, error) {
	if len(o.args) > 0 {
		return performer{}, usagef("--post takes no arguments; a command goes after --exec")
	}
	secrets, err := p.secrets()
	if err != nil {
		return performer{}, err
	}
	endpoint := webhook.Endpoint{URL: p.url, Secrets: secrets}
	config := p.config
	config.Timeout, config.UnknownOnTimeout = o.timeout, o.unknownOnTimeout
	poster, err := webhook.NewPoster(func(_ context.Context, m outbox.Message) (webhook.Endpoint, error) {
		to := endpoint
		to.Header = about(m)
		return to, nil
	}, config)
	if err == nil {
		err = poster.Check(endpoint) // else each message would die of it
	}
	switch {
	case errors.Is(err, webhook.ErrRefusedAddress):
		return performer{}, usagef("--post: %v; --allow opens it", err)
	case err != nil:
		return performer{}, usagef("--post: %v", err)
	}
	return performer{
		do:       func(ctx context.Context, m outbox.Message) (string, error) { return "", poster.Do(ctx, m) },
		timesOut: true,
		close:    poster.CloseIdleConnections,
	}, nil
}

// about is what a service that serves several kinds has to know of a message. Only the payload and the id are signed.
func about(m outbox.Message) http.Header {
	header := http.Header{}
	for _, h := range publish.Headers(outbox.Message{Tenant: m.Tenant, Consumer: m.Consumer, Kind: m.Kind, Key: m.Key, Epoch: m.Epoch, Attempt: m.Attempt}) {
		header.Set(h.Name, publish.Escape(h.Value, func(c byte) bool { return c > ' ' && c <= '~' && c != '%' }))
	}
	return header
}

// secrets reads what signs. No error has anything of it.
func (p *posting) secrets() ([]webhook.Secret, error) {
	from, text, err := secretText("--secret-file", p.secretFile, secretVariable)
	if err != nil {
		return nil, err
	}
	var secrets []webhook.Secret
	for i, word := range strings.Fields(text) {
		secret, err := webhook.ParseSecret(word)
		if err != nil {
			return nil, usagef("%s: number %d: %v", from, i+1, err)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 {
		return nil, usagef("--post signs what it sends: put a secret into the file of --secret-file or into %s", secretVariable)
	}
	return secrets, nil
}

// networkFlag is a flag's list of networks.
type networkFlag struct{ value *[]netip.Prefix }

func (f networkFlag) Set(text string) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		addr, addrErr := netip.ParseAddr(text)
		if addrErr != nil || addr.Zone() != "" {
			return usagef("is neither an address nor a network such as 10.0.0.0/8")
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	*f.value = append(*f.value, prefix)
	return nil
}

func (f networkFlag) String() string { return "" }
func (networkFlag) Type() string     { return "network" }

// verdicts are the words for what an answer may mean.
var verdicts = map[string]outbox.Verdict{
	"delivered": outbox.VerdictDelivered, "retry": outbox.VerdictFailed, "permanent": outbox.VerdictPermanent,
	"moot": outbox.VerdictMoot, "unknown": outbox.VerdictUnknown, "unavailable": outbox.VerdictUnavailable,
}

// statusFlag is a flag's table of answers.
type statusFlag struct{ value *map[int]outbox.Verdict }

func (f statusFlag) Set(text string) error {
	status, word, _ := strings.Cut(text, "=")
	verdict, ok := verdicts[word]
	if !ok {
		return usagef("must end in = and one of %s", strings.Join(slices.Sorted(maps.Keys(verdicts)), ", "))
	}
	n, err := strconv.Atoi(status)
	if err != nil || (n < 1 || n > 5) && (n < 100 || n > 599) {
		return usagef("must begin with a status or the first digit of a class")
	}
	if *f.value == nil {
		*f.value = map[int]outbox.Verdict{}
	}
	(*f.value)[n] = verdict
	return nil
}

func (f statusFlag) String() string { return "" }
func (statusFlag) Type() string     { return "status=outcome" }
