package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
	"licet/cmd/licet/internal/terminal"
)

// maxParallel is the number of connections that the client keeps.
const maxParallel = 64

// licensesImport returns the command for bulk.Import.
func (s licenseGroup) licensesImport() *cobra.Command {
	im := bulk.Import{Now: time.Now, NewID: rand.Text}
	var separator string
	var dry bool
	return s.command(spec{
		use: "import FILE", short: "Grant and change licenses from a CSV file",
		long: `Grant and change licenses from a CSV file. The first row names the columns, in any order:

  - A row without id and license_key grants licenses. It needs product_id; quantity (default 1),
    max_devices, expires_at, metadata, entitlements, buyer_email and customer_reference are
    optional. For a license that another service sold, external_key is the key at that service,
    devices is a JSON array of the devices to bind, and status may be suspended or revoked. If a
    license with the external_key exists, nothing changes.
  - A row with id, license_key or both changes that license. It sets max_devices, expires_at,
    metadata, buyer_email and customer_reference unless they are empty. The command merges
    metadata; null removes a member. It changes the entitlements that differ; null removes
    an entitlement.
    Prefer id: without it, the command looks the license up by its key, which proxies log.
  - The command ignores the other columns of an export.

The command first checks all rows, and changes nothing if a row is invalid. Then it sends the
rows. If the service refuses a row, the command continues with the other rows.
FILE.results.csv has the result of each row, with the ids and the license keys.

If the command is interrupted or killed, repeat it to continue: FILE.journal records the rows
that were sent, so no license is granted twice. If rows failed, repeat the command: it sends
only the failed rows again. Until all rows are done, keep both files and do not change FILE.`,
		example: `  licet licenses import new.csv --dry-run
  licet licenses import new.csv
  licet licenses export --file licenses.csv    then edit the file, and import it:
  licet licenses import licenses.csv`,
		scope: "licenses", resumes: true,
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.BoolVar(&dry, "dry-run", false, "only check the file")
			fs.StringVar(&im.Results, "results", "", "`file` for the result of each row (default: FILE.results.csv)")
			parallelFlag(fs, &im)
			fs.BoolVar(&im.IgnoreUnknown, "ignore-unknown", false, "ignore unknown columns")
			fs.StringVar(&separator, "separator", ",", "`character` between cells, or the word tab")
			fs.IntSliceVar(&im.Skip, "skip", nil,
				"`lines` of rows whose outcome was unknown and whose licenses exist: do not send")
			fs.IntSliceVar(&im.Resend, "resend", nil,
				"`lines` of rows whose outcome was unknown and whose licenses do not exist: send again")
			_ = cmd.MarkFlagFilename("results", "csv")
		},
		run: func(c *session, args []string) error {
			im.Input = args[0]
			if err := checkParallel(&im); err != nil {
				return err
			}
			var good bool
			if im.Separator, good = separatorRune(separator); !good {
				return BadUsage("--separator is %q: write one character such as ; or the word tab", separator)
			}
			if dry {
				im.ExternalKeys = c.externalKeys()
				return c.dryRun(im)
			}
			if err := c.probe(); err != nil {
				return err
			}
			im.ExternalKeys = c.externalKeys()
			return c.runImport(im)
		},
	})
}

// parallelFlag adds the flag for the number of rows to send at once, which checkParallel checks.
func parallelFlag(fs *pflag.FlagSet, im *bulk.Import) {
	fs.IntVar(&im.Parallel, "parallel", 4, fmt.Sprintf("`number` of rows to send at once, 1 to %d", maxParallel))
}

func checkParallel(im *bulk.Import) error {
	if im.Parallel < 1 || im.Parallel > maxParallel {
		return BadUsage("--parallel is %d: write a number from 1 to %d", im.Parallel, maxParallel)
	}
	return nil
}

// printProblems has an import print the problems of its input.
func (c *session) printProblems(im *bulk.Import) {
	input := im.Input
	im.Problem = func(p bulk.Problem) { fmt.Fprintf(c.stderr, "%s: %v\n", input, p) }
}

func separatorRune(text string) (rune, bool) {
	if text == "tab" {
		return '\t', true
	}
	runes := []rune(text)
	return append(runes, 0)[0], len(runes) == 1 && !strings.ContainsAny(text, "\"\r\n\uFFFD")
}

// externalKeys returns how the account matches external keys. It returns an empty text if the service is not reachable,
// or the API key does not have the scope account:read.
func (c *session) externalKeys() string {
	ctx, cancel := context.WithTimeout(c.ctx, settingsTimeout)
	defer cancel()
	var account *client.Account
	_, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
		account, err = api.Account.Get(ctx, as...)
		return err
	})
	if err != nil {
		return ""
	}
	return account.ExternalKeys
}

// settingsTimeout is how long externalKeys waits: a check goes on without the setting.
const settingsTimeout = 5 * time.Second

func (c *session) dryRun(im bulk.Import) error {
	c.printProblems(&im)
	sum, err := im.Check()
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]int{"rows": sum.Rows, "grants": sum.Grants, "licenses": sum.Licenses,
			"changes": sum.Changes})
	}
	return c.write(fmt.Appendf(nil, "%s is valid: %s, %d to grant %s, %d to change a license. Nothing was sent.\n",
		im.Input, counted(sum.Rows, "row"), sum.Grants, counted(sum.Licenses, "license"), sum.Changes))
}

// shownFailures is how many failed rows are printed. The results have all of them.
const shownFailures = 20

// runImport runs an import. The caller has probed the service and set ExternalKeys.
func (c *session) runImport(im bulk.Import) error {
	im.Service = c.client
	c.printProblems(&im)
	bar := terminal.NewMeter(c.stderr, "import", false)
	im.Progress = bar.Set
	failed := 0
	im.Failure = func(f bulk.Failure) {
		bar.Clear()
		if failed++; failed <= shownFailures {
			fmt.Fprintf(c.stderr, "%s: line %d: %s\n", im.Input, f.Line, f.Text)
		}
	}
	sum, err := im.Run(c.ctx)
	bar.Clear()
	if failed > shownFailures {
		fmt.Fprintf(c.stderr, "%s: %d more rows, see %s\n", im.Input, failed-shownFailures, sum.Results)
	}
	if err != nil {
		return c.ended(err, "repeat the command to continue")
	}
	if err := c.importSummary(sum); err != nil {
		return err
	}
	if left := sum.Refused + sum.Unanswered + sum.Open; left > 0 {
		return fmt.Errorf("%d of %s not done: fix the cause and repeat the command, which sends only these", left,
			counted(sum.Rows, "row"))
	}
	return nil
}

func (c *session) importSummary(sum bulk.ImportSummary) error {
	if c.json {
		return c.printJSON(map[string]any{
			"rows": sum.Rows, "done_before": sum.Before, "licenses": sum.Licenses,
			"granted": sum.Granted, "changed": sum.Changed, "unchanged": sum.Unchanged,
			"existing": sum.Existing, "skipped": sum.Skipped,
			"refused": sum.Refused, "unanswered": sum.Unanswered, "not_sent": sum.Open, "results": sum.Results,
		})
	}
	text := counted(sum.Rows, "row")
	separator := ": "
	for _, part := range []struct {
		n    int
		what string
	}{
		{sum.Granted, fmt.Sprintf("granted (%s)", counted(sum.Licenses, "license"))},
		{sum.Changed, "changed"}, {sum.Unchanged, "unchanged"}, {sum.Existing, "already existing"},
		{sum.Skipped, "skipped"}, {sum.Refused, "refused"}, {sum.Unanswered, "unanswered"}, {sum.Open, "not sent"},
	} {
		if part.n > 0 {
			text += fmt.Sprintf("%s%d %s", separator, part.n, part.what)
			separator = ", "
		}
	}
	if sum.Before > 0 {
		text += fmt.Sprintf("; %d of them by earlier runs", sum.Before)
	}
	return c.write([]byte(text + "\nresults: " + sum.Results + "\n"))
}

func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func (c *session) printJSON(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return c.write(append(text, '\n'))
}
