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

// licensesExport returns the command for bulk.Export.
func (s licenseGroup) licensesExport() *cobra.Command {
	var filter client.LicenseFilter
	var path string
	var restart bool
	return s.command(spec{
		use: "export", short: "Export licenses as CSV, newest first",
		long: `Export all licenses that match the filters as CSV, one license in each row, newest first.

With --file, the file appears when it is complete. If the command is interrupted, the rows so
far stay in FILE.partial, and repeating the command continues there: it neither skips nor
repeats licenses. License keys are secrets, so only you can read the file.

An apostrophe precedes each text that a spreadsheet would run as a formula. licet licenses
import removes the apostrophe.`,
		example: `  licet licenses export --file licenses.csv
  licet licenses export --product-id editor --status activated > activated.csv`,
		scope: "licenses:read", noOutput: true, resumes: true,
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&path, "file", "",
				"`file` to write; an existing file is replaced when the export is complete (default: standard output)")
			fs.BoolVar(&restart, "restart", false, "start again instead of continuing an interrupted export")
			licenseFilterFlags(cmd, &filter)
			_ = cmd.MarkFlagFilename("file", "csv")
		},
		run: func(c *session, _ []string) error {
			if restart && path == "" {
				return BadUsage("--restart needs --file: it starts an interrupted export again")
			}
			if err := c.probe(); err != nil {
				return err
			}
			progress := c.stderr
			if path == "" && terminal.Is(c.stdout) {
				progress = nil // the rows show the progress
			}
			bar := terminal.NewMeter(progress, "export", false)
			e := bulk.Export{Service: c.client, Filter: filter, Now: time.Now,
				Progress: func(rows int64) { bar.Set(rows, -1) }}
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
			text := path + ": " + counted(int(sum.Rows), "license")
			if sum.Before > 0 {
				text += fmt.Sprintf(", %d of them from an earlier run", sum.Before)
			}
			_, err = fmt.Fprintln(c.stderr, text)
			return err
		},
	})
}

// probe sends a minimal request, which shows whether the service accepts the API key, and whether it demands a
// signature.
func (c *session) probe() error {
	_, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
		return only(api.ListLicenses(c.ctx, client.LicenseFilter{}, client.Page{Limit: 1}, as...))
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
