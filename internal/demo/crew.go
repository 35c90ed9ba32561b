package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// A crew is the worker processes.
type crew struct {
	command  []string // that calls Work
	database *database
	receiver string
	workers  []*process
}

// A process is one worker.
type process struct {
	name   string
	cmd    *exec.Cmd
	leash  io.WriteCloser // the worker ends when this is closed, also because we died
	output bytes.Buffer
	ended  chan struct{}
	err    error // once it has ended
}

// start starts a worker.
func (c *crew) start(name string) error {
	p := &process{name: name, cmd: exec.Command(c.command[0], c.command[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	p.leash = input
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	c.workers = append(c.workers, p)
	// By its input, since other users can read a command line.
	return json.NewEncoder(input).Encode(job{Name: name, Receiver: c.receiver, Database: c.database})
}

// killOne kills a worker with SIGKILL.
func (c *crew) killOne(name string) error {
	at := slices.IndexFunc(c.workers, func(p *process) bool { return p.name == name })
	p := c.workers[at]
	c.workers = slices.Delete(c.workers, at, at+1)
	err := p.cmd.Process.Kill()
	<-p.ended
	return err
}

// failure is not nil when a worker has ended that should not have.
func (c *crew) failure() error {
	for _, p := range c.workers {
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %v\n%s", p.name, p.err, strings.TrimSpace(p.output.String()))
		default:
		}
	}
	return nil
}

// dismiss lets the workers finish what they are at.
func (c *crew) dismiss() error {
	var failed []error
	for _, p := range c.workers {
		err := json.NewEncoder(p.leash).Encode(true)
		failed = append(failed, err, p.leash.Close())
	}
	for _, p := range c.workers {
		<-p.ended
		if p.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w\n%s", p.name, p.err, strings.TrimSpace(p.output.String())))
		}
	}
	c.workers = nil
	return errors.Join(failed...)
}

// kill ends whoever is left.
func (c *crew) kill() {
	for _, p := range c.workers {
		p.cmd.Process.Kill()
		<-p.ended
	}
}
