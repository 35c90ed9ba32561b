package pgserver

import (
	"os"
	"regexp"
	"strconv"
	"syscall"
)

// memory is the folder whose files live in the machine's memory, and room what must be free of both: the largest tests take half of it.
const (
	memory = "/dev/shm"
	room   = 8 << 30
)

var available = regexp.MustCompile(`MemAvailable:\s+(\d+) kB`)

// inMemory returns the folder for files in memory, or none where there is not room enough.
func inMemory() string {
	info, err := os.ReadFile("/proc/meminfo")
	found := available.FindSubmatch(info)
	var files syscall.Statfs_t
	if err != nil || found == nil || syscall.Statfs(memory, &files) != nil {
		return ""
	}
	kilobytes, err := strconv.ParseUint(string(found[1]), 10, 64)
	if err != nil || kilobytes<<10 < room || files.Bavail*uint64(files.Bsize) < room {
		return ""
	}
	return memory
}
