package main

import (
	"errors"
	"os"
	"runtime/pprof"
)

// profile starts the profiles that were asked for; stop writes them.
func profile(o options) (stop func() error, err error) {
	stop = func() error { return nil }
	if o.cpuProfile != "" {
		file, err := os.Create(o.cpuProfile)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		stop = func() error {
			pprof.StopCPUProfile()
			return file.Close()
		}
	}
	if o.memProfile == "" {
		return stop, nil
	}
	stopCPU := stop // stop is what is returned
	return func() error {
		err := stopCPU()
		file, createErr := os.Create(o.memProfile)
		if createErr != nil {
			return errors.Join(err, createErr)
		}
		return errors.Join(err, pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
	}, nil
}
