// The publisher to Kafka, a module of its own so that other users of the library neither require nor link the client.
module github.com/fencepost-go/fencepost/publish/kafka

go 1.26.0

replace github.com/fencepost-go/fencepost => ../..

require (
	github.com/fencepost-go/fencepost v0.0.0
	github.com/twmb/franz-go v1.22.3
	github.com/twmb/franz-go/pkg/kfake v0.0.0-20260918054303-01f206a7e32c
	github.com/twmb/franz-go/pkg/kmsg v1.15.1
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
)
