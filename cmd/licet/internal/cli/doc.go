// Package cli contains the commands that call a service: licet orders, reports, sandbox, licenses, products, trials,
// events, webhooks, keys, receipts, account, import and redact. Two more call no service: licet profile changes the
// file with the profiles, and licet offline runs on a device without network.
//
// A spec describes a command: its name, its route, and the function that calls the route. All commands share the rest:
// [Service] finds the service and the API key from flags, the environment or a profile. A session calls the service and
// prints the response, as a table for people or as the JSON of the response. It explains errors and says what to do
// next.
//
// The requests themselves are in package client, the files of exports and imports in package bulk, licenses of other
// services in package migrate. licet dev, serve, doctor and store are in package cmd/licet. The tests call a service in
// their own process and compare the output with golden files.
//
// Data goes to standard output, and everything else to standard error, so that the data can be piped.
//
//	spec.go             what a command consists of; groups of commands; arguments
//	usage.go            messages about flags and arguments: suggestions, examples
//	complete.go         completion of arguments and flags with values of the service
//	service.go          which service a command calls, with which API key
//	profiles.go         the file with profiles
//	profilecommands.go  licet profile
//	session.go          one run of a command: calls, output, questions
//	explain.go          error messages
//	listing.go          lists, page by page
//	object.go           values and objects as text
//	table.go            tables that fit the terminal; colors
//	orders.go           licet orders
//	subscriptions.go    licet orders cancel-subscription, resume-subscription, change-subscription, card-page
//	price.go            the amount of an order as flags
//	sandbox.go          licet sandbox
//	licenses.go         licet licenses list, get, grant, devices, remove-device
//	licensechanges.go   licet licenses suspend, reinstate, revoke, renew, reissue, update
//	reports.go          licet reports
//	exports.go          licet licenses export, licet orders export
//	licensesimport.go   licet licenses import
//	activations.go      licet licenses activate, validate, deactivate
//	products.go         licet products
//	trials.go           licet trials start, and the flags for the trials of a product
//	rollouts.go         licet products rollout, rollout-status, cancel-rollout
//	events.go           licet events, licet orders events, licet licenses events
//	webhooks.go         licet webhooks
//	deliveries.go       licet webhooks deliveries, replay
//	keys.go             licet keys; what licet store keys also prints
//	receipts.go         licet receipts
//	account.go          licet account
//	imports.go          licet import: its commands, and their summary
//	importproducts.go   warnings about products that the service lacks
//	importreport.go     the output of licet import --dry-run
//	redact.go           licet redact
//	receiptfiles.go     licet receipts issue, verify, release
//	receiptbatch.go     licet receipts issue for many devices at once
//	offline.go          licet offline, on a device without network
package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// Commands returns the commands of this package.
func Commands(setup Setup) []*cobra.Command {
	return []*cobra.Command{
		orderGroup{setup}.orderCommands(), reportGroup{setup}.reportCommands(), sandboxGroup{setup}.sandboxCommands(),
		licenseGroup{setup}.licenseCommands(), productGroup{setup}.productCommands(), trialGroup{setup}.trialCommands(),
		eventGroup{setup}.eventCommands(),
		webhookGroup{setup}.webhookCommands(), keyGroup{setup}.keyCommands(), receiptGroup{setup}.receiptCommands(),
		accountGroup{setup}.accountCommands(), importGroup{setup}.importCommands(), setup.redactCommand(),
		setup.profileCommands(),
	}
}

// Setup contains what the program passes to the commands.
type Setup struct {
	// Version is the version of the program, for the User-Agent header.
	Version string
	// Lookup looks an environment variable up.
	Lookup func(string) (string, bool)
	// ConfigDir returns the directory of the user's settings.
	ConfigDir func() (string, error)
	// DevEnv is the file in which licet dev writes its URL and API key. Commands read this file if nothing else names
	// a service. Empty: none.
	DevEnv string

	retryFor time.Duration // how long to retry a request that the service allows to retry; 0: 15 s
}

// env returns an environment variable, or an empty string if the variable is unset.
func (s Setup) env(name string) string {
	value, _ := s.Lookup(name)
	return value
}

// UsageError is an error in flags, arguments or the environment, as opposed to a failure of the command.
type UsageError struct{ cause error }

// Error implements error.
func (e UsageError) Error() string { return e.cause.Error() }

// Unwrap returns the error itself.
func (e UsageError) Unwrap() error { return e.cause }

// BadUsage returns a [UsageError].
func BadUsage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// errFailed ends a command that has printed its failures one by one.
var errFailed = errors.New("some changes failed")
