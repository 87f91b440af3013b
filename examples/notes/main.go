package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"licet/client"
)

// defaultService is the service that the shop runs. LICET_URL names another one.
const defaultService = "http://127.0.0.1:8080"

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	g, err := newGuard()
	if err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "activate":
		if err := g.activate(ctx, args[1]); err != nil {
			return err
		}
		fmt.Fprintln(out, "notes is activated on this device")
	case len(args) == 1 && args[0] == "deactivate":
		if err := g.deactivate(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "notes is deactivated on this device")
	case len(args) == 0:
		if err := g.check(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "your notes: buy milk")
	default:
		return errors.New("usage: notes [activate LICENSE-KEY | deactivate]")
	}
	return nil
}

// newGuard returns the guard of the program. Its client has no API key: a program on users' devices must have none.
func newGuard() (*guard, error) {
	address := os.Getenv("LICET_URL")
	if address == "" {
		address = defaultService
	}
	service, err := client.New(address, "", client.RetryFor(3*time.Second), client.WithUserAgent("notes/1.0"))
	if err != nil {
		return nil, err
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, err
	}
	return &guard{service: service, file: filepath.Join(dir, "notes", "license.json"), now: time.Now}, nil
}
