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

// Is reports whether a stream is a terminal.
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

// ErrDeclined means that a question was not answered with yes.
var ErrDeclined = errors.New("not done")

// Confirm asks a question and waits for the answer. It returns ErrDeclined for any answer but y or yes, and if ctx
// ends.
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

// Secret asks for one line, which the terminal does not show. Secret turns the echo off before it prints the prompt,
// so that early input is not shown either.
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
