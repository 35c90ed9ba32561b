package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of the command and of the schema it works with",
		Example: "  fencepost version --json",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return output(cmd, readVersion()) },
	}
}

type versionReport struct {
	Version      string `json:"version"`
	Commit       string `json:"commit,omitempty"`
	Go           string `json:"go"`
	OldestSchema int64  `json:"oldest_schema"`
	NewestSchema int64  `json:"newest_schema"`
}

func readVersion() versionReport {
	v := versionReport{Version: "(unknown)", Go: runtime.Version(), OldestSchema: db.OldestSchema, NewestSchema: db.NewestSchema}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = build.Main.Version
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			v.Commit = setting.Value
		}
	}
	return v
}

func (v versionReport) text(p *page) {
	p.linef("fencepost %s, %s", v.Version, v.Go)
	p.linef("works with schema versions %d to %d, of which it knows those up to %d", v.OldestSchema, db.RefusedSchema-1, v.NewestSchema)
}
