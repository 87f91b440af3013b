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

// Secret asks for one line that is not shown as it is typed. The terminal stops
// showing what is typed before it asks, so that nobody is too quick for it.
func Secret(ctx context.Context, in *os.File, stderr io.Writer, prompt string) (string, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", fmt.Errorf("the terminal: %w", err)
	}
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		screen := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{in, stderr}, "")
		text, err := screen.ReadPassword(prompt)
		typed <- line{text, err}
	}()
	var got line
	select {
	case got = <-typed:
		if errors.Is(got.err, io.EOF) { // Ctrl-C, or Ctrl-D
			got.err = ErrDeclined
		}
	case <-ctx.Done():
		got.err = ErrDeclined
	}
	err = term.Restore(int(in.Fd()), before)
	if got.err != nil {
		fmt.Fprintln(stderr)
	}
	return strings.TrimSpace(got.text), errors.Join(got.err, err)
}
