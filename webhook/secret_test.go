package webhook_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/webhook"
)

func text(prefix string, size int) string {
	raw := make([]byte, size)
	for i := range raw {
		raw[i] = byte(i + 1)
	}
	return prefix + base64.StdEncoding.EncodeToString(raw)
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	for _, good := range []string{text("whsec_", 24), text("whsec_", 64), text("whsk_", 32), text("whpk_", 32)} {
		if got := parse(t, good).Reveal(); got != good {
			t.Errorf("%s came back as %s", good, got)
		}
	}
	own := ed25519.NewKeyFromSeed([]byte(strings.Repeat("ab", 16)))
	whole := "whsk_" + base64.StdEncoding.EncodeToString(own)
	if got := parse(t, whole+"\n").Reveal(); got != "whsk_"+base64.StdEncoding.EncodeToString(own.Seed()) {
		t.Errorf("a private key came back as %s", got)
	}
	broken := append(bytes.Clone(own[:63]), own[63]^1)
	for row, bad := range map[string]string{
		"empty": "", "no prefix": text("", 32), "other prefix": text("whsig_", 32), "other case": text("WHSEC_", 32), "nothing": "whsec_",
		"no base64": "whsec_!!!!", "no padding": strings.TrimRight(text("whsec_", 25), "="), "short": text("whsec_", 23), "long": text("whsec_", 65),
		"short public": text("whpk_", 31), "long public": text("whpk_", 33), "short private": text("whsk_", 31), "odd private": text("whsk_", 33),
		"two halves":  "whsk_" + base64.StdEncoding.EncodeToString(broken),
		"placeholder": "whpk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
	} {
		_, err := webhook.ParseSecret(bad)
		refused(t, row, err, "secret")
		if len(bad) > 12 && strings.Contains(err.Error(), bad[7:12]) {
			t.Errorf("%s: the error tells it: %v", row, err)
		}
	}
}

func TestNewSecrets(t *testing.T) {
	t.Parallel()
	if one, other := webhook.NewSecret().Reveal(), webhook.NewSecret().Reveal(); one == other || parse(t, one).Reveal() != one {
		t.Errorf("%s, %s", one, other)
	}
	private, public := webhook.NewKeyPair()
	for _, s := range []webhook.Secret{private, public} {
		if again := parse(t, s.Reveal()); again.Reveal() != s.Reveal() {
			t.Errorf("%s came back as %s", s.Reveal(), again.Reveal())
		}
	}
	if private.Reveal()[5:] == public.Reveal()[5:] {
		t.Error("the public key is the private one")
	}
}

// However a secret, or what holds one, is printed, it is not told.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	private, public := webhook.NewKeyPair()
	for _, secret := range []webhook.Secret{webhook.NewSecret(), private, public} {
		endpoint := webhook.Endpoint{URL: "https://example.com/canary?canary", Secrets: []webhook.Secret{secret}, Header: map[string][]string{"Authorization": {"canary"}}}
		hidden := struct {
			secret  webhook.Secret
			secrets []webhook.Secret
			pointer *webhook.Secret
		}{secret, []webhook.Secret{secret}, &secret}
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+verb+verb+"\n", secret, &secret, webhook.Origin{Secrets: []webhook.Secret{secret}})
			fmt.Fprintf(&out, verb+verb+"\n", hidden, &hidden)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			fmt.Fprintf(&out, verb+verb+"\n", endpoint, []webhook.Endpoint{endpoint})
		}
		log := slog.New(slog.NewJSONHandler(&out, nil))
		log.Info("", "secret", secret, "endpoint", endpoint, "all", []webhook.Secret{secret})
		slog.New(slog.NewTextHandler(&out, nil)).Info("", "secret", secret, "endpoint", endpoint, "origin", webhook.Origin{Secrets: []webhook.Secret{secret}})
		text, err := json.Marshal(map[string]any{"secret": secret, "endpoint": endpoint, "origin": webhook.Origin{Secrets: []webhook.Secret{secret}}})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
		_, encoded, _ := strings.Cut(secret.Reveal(), "_")
		raw, _ := base64.StdEncoding.DecodeString(encoded)
		for _, leak := range []string{encoded[:8], fmt.Sprintf("%x", raw[:4]), fmt.Sprintf("%d %d %d", raw[0], raw[1], raw[2]), "canary", fmt.Sprintf("%x", "canary")} {
			if strings.Contains(out.String(), leak) {
				t.Errorf("%v is told as %q:\n%s", secret, leak, &out)
			}
		}
		if kind := secret.String(); !strings.Contains(out.String(), `"secret":"`+kind+`"`) || !strings.Contains(out.String(), "https://example.com") {
			t.Errorf("neither kind nor host is told:\n%s", &out)
		}
	}
	if none := (webhook.Secret{}); none.String() != "no secret" || none.Reveal() != "" {
		t.Errorf("%v", none)
	}
}
