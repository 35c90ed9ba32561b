package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// A report is what a command found: a struct with JSON tags, and the text of it for people.
type report interface{ text(*page) }

// output prints a report in the form that was asked for.
func output(cmd *cobra.Command, r report) error {
	if asJSON(cmd) {
		document, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(printableJSON(append(document, '\n')))
		return err
	}
	p := page{colors: colors(cmd.OutOrStdout())}
	r.text(&p)
	_, err := io.WriteString(cmd.OutOrStdout(), p.String())
	return err
}

func asJSON(cmd *cobra.Command) bool {
	asked, err := cmd.Flags().GetBool("json")
	return err == nil && asked
}

// noJSON refuses the flag where what is printed is a script.
func noJSON(cmd *cobra.Command) error {
	if asJSON(cmd) {
		return usagef("%s prints a script, which has no JSON form", cmd.CommandPath())
	}
	return nil
}

// colors reports whether the output shows them: a terminal whose user did not decline (no-color.org).
func colors(out io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(out)
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// A page is text for people. Every string that is put on it is made printable, wherever it comes from.
type page struct {
	strings.Builder
	colors bool
}

// linef adds a line, its string arguments made printable.
func (p *page) linef(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = printable(text)
		}
	}
	fmt.Fprintf(p, format+"\n", args...)
}

// table adds aligned columns.
func (p *page) table(header []string, rows [][]string) {
	table := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(header, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // writes to memory
}

// A level says how much something should worry its reader.
type level string

const (
	levelOK       level = "ok"
	levelWarning  level = "warning"
	levelCritical level = "critical"
)

// levelLinef adds a line that begins with a level.
func (p *page) levelLinef(l level, format string, args ...any) {
	shown := fmt.Sprintf("%-8s", l)
	if color, ok := map[level]string{levelOK: "32", levelWarning: "33", levelCritical: "31"}[l]; ok && p.colors {
		shown = "\x1b[" + color + "m" + shown + "\x1b[0m"
	}
	p.WriteString(shown + "  ")
	p.linef(format, args...)
}

// instant is how people read a time; nothing stands for one that does not apply.
func instant(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format("2006-01-02 15:04:05Z")
}

// age is how people read a length of time.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 2*day:
		return d.Round(time.Second).String()
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}
