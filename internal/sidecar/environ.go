package sidecar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// longestVariable is what Linux lets one variable be (MAX_ARG_STRLEN), with its name and the NUL at its end. The metadata that a producer may
// give come to half of it at most.
const longestVariable = 128 << 10

// markVariable holds a text that only one command was ever given, by which its guard finds it.
const markVariable = "FENCEPOST_MARK"

// Environ is the environment that tells of a message. It is an error when a variable cannot hold its value, as only one can that was written
// past the library.
func Environ(m outbox.Message) ([]string, error) {
	metadata, err := encoded(m.Metadata)
	if err != nil {
		return nil, err
	}
	unsure := "0"
	if m.Unsure {
		unsure = "1"
	}
	environ := []string{
		"FENCEPOST_ID=" + strconv.FormatInt(m.ID, 10),
		"FENCEPOST_CONSUMER=" + m.Consumer,
		"FENCEPOST_TARGET=" + m.Target,
		"FENCEPOST_KIND=" + m.Kind,
		"FENCEPOST_TENANT=" + m.Tenant,
		"FENCEPOST_KEY=" + m.Key,
		"FENCEPOST_ORDER_KEY=" + m.OrderKey,
		"FENCEPOST_ATTEMPT=" + strconv.Itoa(m.Attempt),
		"FENCEPOST_EPOCH=" + strconv.FormatInt(m.Epoch, 10),
		"FENCEPOST_LEASED_UNTIL=" + m.LeasedUntil.UTC().Format(time.RFC3339Nano),
		"FENCEPOST_UNSURE=" + unsure,
		"FENCEPOST_METADATA=" + metadata,
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if strings.IndexByte(value, 0) >= 0 {
			return nil, fmt.Errorf("%s cannot hold a NUL", name)
		}
		if len(variable) >= longestVariable {
			return nil, fmt.Errorf("%s cannot hold %d bytes", name, len(value))
		}
	}
	return environ, nil
}

// encoded is metadata as a JSON object on one line.
func encoded(metadata map[string]string) (string, error) {
	if len(metadata) == 0 {
		return "{}", nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // six bytes for one
	err := encoder.Encode(metadata)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// Inherit is what a command is given of an environment: all but what may lead into the database of its worker. Withheld are the variables
// whose names begin with FENCEPOST_ or PG, DATABASE_URL, and each whose value holds one of the secrets. Keep names those that are handed on
// nevertheless; one of FENCEPOST_ never is.
func Inherit(environ, secrets, keep []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case Reserved(name):
			return true
		case slices.Contains(keep, name):
			return false
		case strings.HasPrefix(name, "PG"), name == "DATABASE_URL":
			return true
		}
		return slices.ContainsFunc(secrets, func(secret string) bool { return secret != "" && strings.Contains(value, secret) })
	})
}

// Reserved says whether a variable is one of fencepost's own.
func Reserved(name string) bool { return strings.HasPrefix(name, "FENCEPOST_") }
