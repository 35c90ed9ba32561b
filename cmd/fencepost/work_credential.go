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
	source, text := credentialVariable, os.Getenv(credentialVariable)
	if w.credentialFile != "" {
		content, err := os.ReadFile(w.credentialFile)
		if err != nil {
			return outbox.Credential{}, usagef("cannot read the file of --credential-file: %v", withoutPath(err))
		}
		source, text = "the file of --credential-file", string(content)
	} else if text == "" {
		return outbox.Credential{}, nil
	}
	credential, err := outbox.ParseCredential(strings.TrimSpace(text))
	if err != nil {
		return outbox.Credential{}, usagef("%s holds no credential: it is one line, as fencepost worker add prints it", source)
	}
	return credential, nil
}

// secretsOfCredential are the forms in which a credential gets about, the longest first.
func secretsOfCredential(c outbox.Credential) []string {
	if c.IsZero() {
		return nil
	}
	text := c.Reveal()
	return []string{text, text[strings.LastIndex(text, ":")+1:]}
}
