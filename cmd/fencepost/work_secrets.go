package main

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// shortPassword is one that may well be a word of what a command prints.
const shortPassword = 8

// secretsOf are the forms in which a connection string and its password get about, the longest first. A short password is one only where it
// stands in a connection string.
func secretsOf(dsn, password string) []string {
	secrets := []string{dsn}
	if password != "" {
		encoded := strings.TrimPrefix(url.UserPassword("", password).String(), ":")
		for _, form := range []string{password, encoded, url.QueryEscape(password)} {
			secrets = append(secrets, ":"+form+"@", "password="+form)
			if len(password) >= shortPassword {
				secrets = append(secrets, form)
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(secrets)
}

// redactor takes the secrets out of a text.
func redactor(secrets []string) func(string) string {
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, "***")
	}
	return strings.NewReplacer(pairs...).Replace
}
