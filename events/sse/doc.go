// Package sse serves the stream of events over HTTP as server-sent events, which browsers and others follow and resume by themselves. It is
// transport and no source: what it sends was stored before, and a client that was away goes on from the last id it has.
package sse
