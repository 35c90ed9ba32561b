package pgserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestStartRestartStop(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context(), Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	port := c.Port
	if err := c.Restart("immediate"); err != nil {
		t.Error(err)
	}
	if c.Port != port {
		t.Errorf("the port changed from %d to %d", port, c.Port)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	// A server that is gone closes or resets the connection; one that runs waits for a start-up packet.
	if _, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestBinariesFromVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(BinVariable, dir)
	if got, err := Binaries(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("an empty folder: got %q, %v", got, err)
	}
	fakeBinaries(t, dir)
	if got, err := Binaries(); err != nil || got != dir {
		t.Errorf("got %q, %v, want %q", got, err, dir)
	}
}

func TestBinariesFromPath(t *testing.T) {
	client, server := t.TempDir(), t.TempDir()
	fakeBinaries(t, server)
	t.Setenv(BinVariable, "")
	t.Setenv("PATH", client+string(filepath.ListSeparator)+server)
	if got, err := Binaries(); err != nil || got != server {
		t.Errorf("got %q, %v, want %q", got, err, server)
	}
}

func TestNewestFirst(t *testing.T) {
	t.Parallel()
	got := newestFirst([]string{"/opt/postgresql@14/bin", "/opt/postgresql@9.6/bin", "/opt/postgresql/bin", "/opt/postgresql@18/bin"})
	want := []string{"/opt/postgresql/bin", "/opt/postgresql@18/bin", "/opt/postgresql@14/bin", "/opt/postgresql@9.6/bin"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func fakeBinaries(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
