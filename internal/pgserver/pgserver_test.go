package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// ownerVariable tells the test binary to be a process that starts a cluster, prints its folder and waits to be killed.
const ownerVariable = "FENCEPOST_PGSERVER_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) == "" {
		os.Exit(m.Run())
	}
	c, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.dir)
	io.ReadAll(os.Stdin)
	c.Stop()
}

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
	if err := errors.Join(c.Halt("fast"), c.Resume()); err != nil {
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

func TestRemovedWhenOwnerIsKilled(t *testing.T) {
	t.Parallel()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"=1")
	if _, err := owner.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	dir, readErr := bufio.NewReader(output).ReadString('\n')
	dir = strings.TrimSpace(dir)
	_, statErr := os.Stat(filepath.Join(dir, "data", "postmaster.pid"))
	if err := errors.Join(readErr, statErr, owner.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	owner.Wait()

	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s is still there", dir)
		}
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
