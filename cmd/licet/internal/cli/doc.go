// Package cli is the commands that call a service: licet orders, licenses,
// products, events, webhooks, redact and profile, and licet keys where it is told of no store.
//
// Each command is a [spec]: what it is called, which route it stands for, and a
// function that calls that route. What they share happens around it. [Service]
// finds out which service is meant, from flags, the environment or a profile;
// a session calls it and prints the answer, as a table for people or as the JSON
// that came; and what went wrong is put into words that say what to do next.
//
// Data goes to standard output and everything else to standard error, so that
// what is printed can be piped into something else.
package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// Commands gives the commands of this package but for those of licet keys.
func Commands(setup Setup) []*cobra.Command {
	return []*cobra.Command{
		setup.orderCommands(), setup.licenseCommands(), setup.productCommands(), setup.eventCommands(), setup.webhookCommands(),
		setup.keyCommands(), setup.redactCommand(), setup.profileCommands(),
	}
}

// Setup is what the commands are given by the program.
type Setup struct {
	// Version of the program, which calls say they come from.
	Version string
	// Lookup finds an environment variable.
	Lookup func(string) (string, bool)
	// ConfigDir finds the directory of the user's settings.
	ConfigDir func() (string, error)

	retryFor time.Duration // how long a service that says it may help is asked again; 0: 15 s
}

// env gives an environment variable. One that is empty counts as not there.
func (s Setup) env(name string) string {
	value, _ := s.Lookup(name)
	return value
}

// UsageError is a fault of what was asked for, and not of what happened then.
type UsageError struct{ cause error }

// Error gives the text of what is wrong.
func (e UsageError) Error() string { return e.cause.Error() }

// Unwrap gives the error without the mark.
func (e UsageError) Unwrap() error { return e.cause }

// BadUsage makes a [UsageError].
func BadUsage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// errFailed ends a command whose failures have been printed one by one.
var errFailed = errors.New("not everything was done")
