package cli

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/bulk"
	"licet/cmd/licet/internal/terminal"
)

// maxParallel is as many connections as the client keeps.
const maxParallel = 64

// licensesImport is bulk.Import as a command.
func (s Setup) licensesImport() *cobra.Command {
	im := bulk.Import{Now: time.Now, NewID: rand.Text}
	var separator string
	var dry bool
	return s.command(spec{
		use: "import FILE", short: "Grant and change licenses as a CSV file says",
		long: `Grant and change licenses as a CSV file says. Its first row names the columns, in
any order. A row without a license_key grants licenses: product_id, and where they
are not empty quantity (else 1), max_devices, expires_at and metadata. A row with one
changes that license: max_devices, expires_at and metadata are set where they are not
empty; members of metadata are merged, and removed where they are null. The other
columns of an export may be there and are read over.

All rows are checked before the first is sent; if anything is wrong with any, nothing
is changed. Then they are sent, and a row that the service refuses keeps no other from
being sent. What became of each is in FILE.results.csv, with the license keys.

If the command breaks off, or is killed, the same command goes on, and grants nothing
twice: FILE.journal knows what was sent. Afterwards it sends those again that failed,
and nothing else. Keep both files, and FILE as it is, until all is done.`,
		example: `  licet licenses import new.csv --dry-run
  licet licenses import new.csv
  licet licenses export --file licenses.csv, edit that, licet licenses import licenses.csv`,
		args: cobra.ExactArgs(1), scope: "licenses", goesOn: true,
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.BoolVar(&dry, "dry-run", false, "only check the file")
			fs.StringVar(&im.Results, "results", "", "`file` to tell in what became of each row; left out: FILE.results.csv")
			fs.IntVar(&im.Parallel, "parallel", 4, fmt.Sprintf("how `many` rows may be on their way at once, 1 to %d", maxParallel))
			fs.BoolVar(&im.IgnoreUnknown, "ignore-unknown", false, "read over columns that are not known")
			fs.StringVar(&separator, "separator", ",", "`character` between cells; tab for a tab")
			fs.IntSliceVar(&im.Skip, "skip", nil, "`lines` of rows that nobody knows the outcome of, and that you have found granted")
			fs.IntSliceVar(&im.Resend, "resend", nil, "`lines` of such rows that you have found not granted")
			_ = cmd.MarkFlagFilename("results", "csv")
		},
		run: func(c *session, args []string) error {
			im.Input, im.Service = args[0], c.client
			if im.Parallel < 1 || im.Parallel > maxParallel {
				return BadUsage("--parallel is %d: it must be from 1 to %d", im.Parallel, maxParallel)
			}
			var good bool
			if im.Separator, good = separatorRune(separator); !good {
				return BadUsage("--separator is %q: it must be one character such as ; or the word tab", separator)
			}
			im.Problem = func(p bulk.Problem) { fmt.Fprintf(c.stderr, "%s: %v\n", im.Input, p) }
			if dry {
				return c.dryRun(im)
			}
			return c.runImport(im)
		},
	})
}

func separatorRune(text string) (rune, bool) {
	if text == "tab" {
		return '\t', true
	}
	runes := []rune(text)
	return append(runes, 0)[0], len(runes) == 1 && !strings.ContainsAny(text, "\"\r\n\uFFFD")
}

func (c *session) dryRun(im bulk.Import) error {
	sum, err := im.Check()
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]int{"rows": sum.Rows, "grants": sum.Grants, "licenses": sum.Licenses, "changes": sum.Changes})
	}
	return c.write(fmt.Appendf(nil, "%s is good: %s, %d to grant %s, %d to change one. Nothing was sent\n",
		im.Input, counted(sum.Rows, "row"), sum.Grants, counted(sum.Licenses, "license"), sum.Changes))
}

// shownFailures is how many rows are named where all are in the results.
const shownFailures = 20

func (c *session) runImport(im bulk.Import) error {
	if err := c.greet(); err != nil {
		return err
	}
	im.Service = c.client
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
		return c.ended(err, "the same command goes on from there")
	}
	if err := c.importSummary(sum); err != nil {
		return err
	}
	if left := sum.Refused + sum.Unanswered + sum.Open; left > 0 {
		are := "are"
		if left == 1 {
			are = "is"
		}
		return fmt.Errorf("%d of %s %s not done. Once the cause is mended, the same command sends what is left, and nothing else", left, counted(sum.Rows, "row"), are)
	}
	return nil
}

func (c *session) importSummary(sum bulk.ImportSummary) error {
	if c.json {
		return c.printJSON(map[string]any{
			"rows": sum.Rows, "done_before": sum.Before, "licenses": sum.Licenses,
			"granted": sum.Granted, "changed": sum.Changed, "unchanged": sum.Unchanged, "skipped": sum.Skipped,
			"refused": sum.Refused, "unanswered": sum.Unanswered, "not_sent": sum.Open, "results": sum.Results,
		})
	}
	text := counted(sum.Rows, "row")
	separator := ": "
	for _, part := range []struct {
		n    int
		what string
	}{
		{sum.Granted, fmt.Sprintf("granted (%s)", counted(sum.Licenses, "license"))}, {sum.Changed, "changed"}, {sum.Unchanged, "unchanged"},
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
