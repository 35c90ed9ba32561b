package outbox

import (
	"context"
	"maps"
	"strings"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/content"
)

// maxTrace bounds the trace context in bytes. Beside the longest metadata of a caller, each byte escaped, it still fits the column.
const maxTrace = 2 << 10

// traceOf is the trace context of ctx, fit to be stored. What is not is left out, since a trace is no reason to refuse an effect.
func (b *Box) traceOf(ctx context.Context) map[string]string {
	given := b.observer.Propagate(ctx)
	if len(given) == 0 {
		return nil
	}
	trace, size := map[string]string{}, 0
	for _, name := range bounds.Reserved {
		value := given[name]
		if value == "" || strings.IndexByte(value, 0) >= 0 || bounds.InvalidUTF8(value) >= 0 || size+len(name)+len(value) > maxTrace {
			continue
		}
		trace[name] = value
		size += len(name) + len(value)
	}
	return trace
}

// traced is the metadata of an effect with its trace, whose names are reserved.
func traced(metadata, trace map[string]string) map[string]string {
	if len(trace) == 0 {
		return metadata
	}
	all := maps.Clone(trace)
	maps.Copy(all, metadata)
	return all
}

// metadataOf reads stored metadata. Only a row written by hand can hold anything else; it must not poison the batch it is leased
// with, so its message goes on without metadata.
func (b *Box) metadataOf(id int64, text string) map[string]string {
	metadata, ok := content.DecodeMetadata(text)
	if !ok {
		b.log.Warn("metadata is not a JSON object of strings", "id", id)
	}
	return metadata
}
