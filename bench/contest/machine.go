package contest

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
)

// A Machine is what a run was made on.
type Machine struct {
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	Memory   int64    `json:"memory_bytes"`
	System   string   `json:"system"`
	Go       string   `json:"go"`
	Settings []string `json:"settings"` // of the server, where they are not the defaults
}

// Machine describes this one, with the server's settings.
func (s *Server) Machine(ctx context.Context) (Machine, error) {
	m := Machine{
		CPU:    runtime.GOARCH,
		Cores:  runtime.NumCPU(),
		Go:     runtime.Version() + " with GOGC=" + gcPercent(),
		System: strings.TrimSpace(runtime.GOOS + " " + field("/proc/sys/kernel/osrelease", "")),
	}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = model
	}
	kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	m.Memory = kilobytes << 10
	rows, err := s.DB.QueryContext(ctx, `
		SELECT name || '=' || current_setting(name) FROM pg_settings
		WHERE source = 'configuration file' AND category NOT LIKE 'Client Connection%' AND category NOT LIKE 'Reporting%' AND category NOT LIKE 'Connections%'
		ORDER BY name`)
	if err != nil {
		return m, err
	}
	defer rows.Close()
	for rows.Next() {
		var setting string
		if err := rows.Scan(&setting); err != nil {
			return m, err
		}
		m.Settings = append(m.Settings, setting)
	}
	return m, rows.Err()
}

func gcPercent() string {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	if n := percent[0].Value.Uint64(); n <= math.MaxInt32 {
		return strconv.FormatUint(n, 10)
	}
	return "off"
}

// field is what a file says of a name, or its first line where no name is asked for; "" where there is none.
func field(file, name string) string {
	content, _ := os.ReadFile(file)
	for line := range strings.Lines(string(content)) {
		if name == "" {
			return strings.TrimSpace(line)
		}
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
