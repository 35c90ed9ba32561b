package main

import (
	"os"
	"strings"

	"github.com/fencepost-go/fencepost/outbox"
)

// credentialVariable holds the credential of a worker that has no file of it.
const credentialVariable = "FENCEPOST_WORKER_CREDENTIAL"

// credential reads the credential of this worker, if it has one. What it says about a bad one repeats nothing of it.
func (w *working) credential() (outbox.Credential, error) {
	source, text, err := secretText("--credential-file", w.credentialFile, credentialVariable)
	if err != nil || text == "" && w.credentialFile == "" {
		return outbox.Credential{}, err
	}
	credential, err := outbox.ParseCredential(strings.TrimSpace(text))
	if err != nil {
		return outbox.Credential{}, usagef("%s holds no credential: it is one line, as fencepost worker add prints it", source)
	}
	return credential, nil
}

// secretText is what the file of a flag holds, or a variable where there is no file, and what to call the place. Its error has no path, which may be the
// secret itself.
func secretText(flag, file, variable string) (source, text string, err error) {
	if file == "" {
		return variable, os.Getenv(variable), nil
	}
	source = "the file of " + flag
	content, err := os.ReadFile(file)
	if err != nil {
		return source, "", usagef("cannot read %s: %v", source, withoutPath(err))
	}
	return source, string(content), nil
}

// secretsOfCredential are the forms in which a credential gets about, the longest first.
func secretsOfCredential(c outbox.Credential) []string {
	if c.IsZero() {
		return nil
	}
	text := c.Reveal()
	return []string{text, text[strings.LastIndex(text, ":")+1:]}
}
