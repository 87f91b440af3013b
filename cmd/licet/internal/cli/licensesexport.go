package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
	"licet/cmd/licet/internal/terminal"
)

// licensesExport is bulk.Export as a command.
func (s Setup) licensesExport() *cobra.Command {
	var filter client.LicenseFilter
	var path string
	var restart bool
	return s.command(spec{
		use: "export", short: "Write licenses as CSV, the newest first",
		long: `Write all licenses to which the filters apply as CSV, one a row, the newest first.

With --file the file appears once it is whole. If the command breaks off, what it
has so far stays in FILE.partial, and the same command goes on from there: no
license is left out, and none is in the file twice. License keys open what they
are for, so only you can read the file.

A text that a spreadsheet would run as a formula has an apostrophe before it, which
licet licenses import takes away again.`,
		example: `  licet licenses export --file licenses.csv
  licet licenses export --product-id editor --status activated > activated.csv`,
		args: cobra.NoArgs, scope: "licenses:read", noOutput: true, goesOn: true,
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&path, "file", "", "`file` to write, replaced once the new one is whole; left out: standard output")
			fs.BoolVar(&restart, "restart", false, "begin anew where an earlier try with --file broke off")
			licenseFilterFlags(cmd, &filter)
			_ = cmd.MarkFlagFilename("file", "csv")
		},
		run: func(c *session, _ []string) error {
			if restart && path == "" {
				return BadUsage("--restart is for an export with --file that broke off")
			}
			if err := c.greet(); err != nil {
				return err
			}
			progress := c.stderr
			if path == "" && terminal.Is(c.stdout) {
				progress = nil // the rows show by themselves how far it is
			}
			bar := terminal.NewMeter(progress, "export", false)
			e := bulk.Export{Service: c.client, Filter: filter, Now: time.Now, Progress: func(rows int64) { bar.Set(rows, -1) }}
			if path == "" {
				rows, err := e.To(c.ctx, c.stdout)
				bar.Clear()
				if err != nil && rows > 0 {
					err = &bulk.BrokenOffError{Where: "after " + counted(int(rows), "row"), Cause: err}
				}
				return c.ended(err, "what was written is not all there is")
			}
			sum, err := e.ToFile(c.ctx, path, restart)
			bar.Clear()
			if err != nil {
				return c.ended(err, "the same command goes on from there")
			}
			text := path + ": " + counted(int(sum.Rows), "license")
			if sum.Before > 0 {
				text += fmt.Sprintf(", of which %d were there already", sum.Before)
			}
			_, err = fmt.Fprintln(c.stderr, text)
			return err
		},
	})
}

// greet asks the service for as little as there is, so that it is known to take
// what is about to be asked of it, with a signature if it wants one.
func (c *session) greet() error {
	_, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
		return only(api.ListLicenses(c.ctx, client.LicenseFilter{}, client.Page{Limit: 1}, as...))
	})
	return err
}

// ended explains why an export or an import has ended. rest says what of it holds.
func (c *session) ended(err error, rest string) error {
	var broke *bulk.BrokenOffError
	if errors.As(err, &broke) {
		return fmt.Errorf("it broke off %s; %s: %w", broke.Where, rest, c.explain(asCall(broke.Cause)))
	}
	return asCall(err)
}

// asCall marks what came of calling the service, and not of a file.
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
