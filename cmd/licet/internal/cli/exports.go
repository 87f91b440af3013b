package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
	"licet/cmd/licet/internal/terminal"
)

// licensesExport returns the command for bulk.ExportLicenses.
func (s licenseGroup) licensesExport() *cobra.Command {
	return exportCommand(s.Setup, spec{
		use: "export", short: "Export licenses as CSV, newest first",
		long: `Export all licenses that match the filters as CSV, one license in each row, newest first.

With --file, the file appears when it is complete. If the command is interrupted, the rows so
far stay in FILE.partial, and repeating the command continues there: it neither skips nor
repeats licenses. License keys are secrets, so only you can read the file.

An apostrophe precedes each text that a spreadsheet would run as a formula. licet licenses
import removes the apostrophe.`,
		example: `  licet licenses export --file licenses.csv
  licet licenses export --product-id editor --status activated > activated.csv`,
		scope: "licenses:read",
	}, "license", licenseFilterFlags, (*session).probe, bulk.ExportLicenses)
}

// ordersExport returns the command for bulk.ExportOrders.
func (s orderGroup) ordersExport() *cobra.Command {
	return exportCommand(s.Setup, spec{
		use: "export", short: "Export orders as CSV, newest first",
		long: `Export all orders that match the filters as CSV for your books, one order in each row, newest
first. Amounts are decimal numbers, such as 49.00 for USD and 4900 for JPY.

With --file, the file appears when it is complete. If the command is interrupted, the rows so
far stay in FILE.partial, and repeating the command continues there: it neither skips nor
repeats orders. Only you can read the file.

An apostrophe precedes each text that a spreadsheet would run as a formula.`,
		example: `  licet orders export --file orders.csv
  licet orders export --paid-from 2031-01-01 --paid-to 2031-02-01 --file january.csv`,
		scope: "orders:read",
	}, "order", orderFilterFlags, (*session).probeOrders, bulk.ExportOrders)
}

// exportCommand completes the spec of a command that exports items of a kind, which item names.
func exportCommand[Item, Filter any](
	s Setup, is spec, item string, filterFlags func(*cobra.Command, *Filter), probe func(*session) error,
	of func(*client.Client) *bulk.Export[Item, Filter],
) *cobra.Command {
	var filter Filter
	var path string
	var restart bool
	is.noOutput, is.resumes = true, true
	is.flags = func(cmd *cobra.Command) {
		fs := cmd.Flags()
		fs.StringVar(&path, "file", "",
			"`file` to write; an existing file is replaced when the export is complete (default: standard output)")
		fs.BoolVar(&restart, "restart", false, "start again instead of continuing an interrupted export")
		filterFlags(cmd, &filter)
		_ = cmd.MarkFlagFilename("file", "csv")
	}
	is.run = func(c *session, _ []string) error {
		if restart && path == "" {
			return BadUsage("--restart needs --file: it starts an interrupted export again")
		}
		if err := probe(c); err != nil {
			return err
		}
		progress := c.stderr
		if path == "" && terminal.Is(c.stdout) {
			progress = nil // the rows show the progress
		}
		bar := terminal.NewMeter(progress, "export", false)
		e := of(c.client)
		e.Filter, e.Progress = filter, func(rows int64) { bar.Set(rows, -1) }
		if path == "" {
			rows, err := e.To(c.ctx, c.stdout)
			bar.Clear()
			if err != nil && rows > 0 {
				err = &bulk.BrokenOffError{Where: "after " + counted(int(rows), "row"), Cause: err}
			}
			return c.ended(err, "the output is incomplete")
		}
		sum, err := e.ToFile(c.ctx, path, restart)
		bar.Clear()
		if err != nil {
			return c.ended(err, "repeat the command to continue")
		}
		text := path + ": " + counted(int(sum.Rows), item)
		if sum.Before > 0 {
			text += fmt.Sprintf(", %d of them from an earlier run", sum.Before)
		}
		_, err = fmt.Fprintln(c.stderr, text)
		return err
	}
	return s.command(is)
}

// probeOrders is probe for an API key that reads orders.
func (c *session) probeOrders() error {
	_, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
		return only(api.Orders.List(c.ctx, client.OrderFilter{}, client.Page{Limit: 1}, as...))
	})
	return err
}

// probe sends a minimal request, which shows whether the service accepts the API key, and whether it demands a
// signature.
func (c *session) probe() error {
	_, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
		return only(api.Licenses.List(c.ctx, client.LicenseFilter{}, client.Page{Limit: 1}, as...))
	})
	return err
}

// ended explains why an export or an import ended. rest says what to do about the remaining rows.
func (c *session) ended(err error, rest string) error {
	var broke *bulk.BrokenOffError
	if errors.As(err, &broke) {
		return fmt.Errorf("interrupted %s; %s: %w", broke.Where, rest, c.explain(asCall(broke.Cause)))
	}
	return asCall(err)
}

// asCall marks an error of a call to the service, as opposed to an error of a file.
func asCall(err error) error {
	var file *fs.PathError
	var refused *client.Error
	var network net.Error
	called := errors.As(err, &refused) || errors.As(err, &network) || errors.Is(err, context.Canceled)
	if called && !errors.As(err, &file) {
		return callError{err}
	}
	return err
}
