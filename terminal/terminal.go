// Package terminal talks to whoever sits at a terminal: it shows how far
// something is, asks before what can't be undone, and takes secrets without
// showing them. Where nobody is there it is silent.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Is tells whether there is somebody at the other end of a stream.
func Is(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// ErrDeclined tells that a question was not answered with yes.
var ErrDeclined = errors.New("not done")

// Confirm asks a question and waits for its answer. Anything but y or yes is a
// no, and so is the end of ctx.
func Confirm(ctx context.Context, in io.Reader, stderr io.Writer, question string) error {
	fmt.Fprintf(stderr, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case yes := <-answer:
		if yes == "y" || yes == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(stderr)
	}
	return ErrDeclined
}

// Secret asks for one line that is not shown as it is typed.
func Secret(ctx context.Context, in *os.File, stderr io.Writer, prompt string) (string, error) {
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return "", fmt.Errorf("the terminal: %w", err)
	}
	fmt.Fprint(stderr, prompt)
	type line struct {
		text []byte
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(int(in.Fd()))
		typed <- line{text, err}
	}()
	select {
	case l := <-typed:
		fmt.Fprintln(stderr)
		return strings.TrimSpace(string(l.text)), l.err
	case <-ctx.Done():
		fmt.Fprintln(stderr)
		return "", errors.Join(ctx.Err(), term.Restore(int(in.Fd()), before))
	}
}
