//go:build !race

package property_test

// raceDetector makes everything some ten times slower, so runs are a tenth then: what races shows early.
const raceDetector = false
