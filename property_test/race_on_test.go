//go:build race

package property_test

const raceDetector = true
