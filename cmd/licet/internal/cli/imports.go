package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/bulk"
	"licet/cmd/licet/internal/migrate"
	"licet/cmd/licet/internal/terminal"
)

// importGroup builds the commands of licet import.
type importGroup struct{ Setup }

func (s importGroup) importCommands() *cobra.Command {
	var commands []*cobra.Command
	for _, service := range migrate.Services() {
		commands = append(commands, s.importFrom(service))
	}
	return group("import", "Import licenses that another service sold",
		`  licet import gumroad sales.csv --dry-run
  licet import keygen --from-api https://api.keygen.sh/v1/accounts/ACCOUNT`, commands...)
}

// tokenVariable is the environment variable with the credential of the other service.
const tokenVariable = "LICET_IMPORT_TOKEN"

// foreignImport is one run of licet import.
type foreignImport struct {
	*session
	service   *migrate.Service
	fetch     migrate.Fetch
	tokenFile string
	products  []string
	set       migrate.Settings
	dry       bool
	im        bulk.Import
}

func (s importGroup) importFrom(service *migrate.Service) *cobra.Command {
	f := foreignImport{service: service, im: bulk.Import{Now: time.Now, NewID: rand.Text, Separator: ','}}
	files := "FILE has responses of the API as JSON, one after the other"
	if service.Exports {
		files += ", or is the CSV file of sales\nfrom the dashboard"
	}
	return s.command(spec{
		use: service.Name + " [FILE]", short: "Import licenses from " + service.Title,
		long: fmt.Sprintf(`Import licenses from %s, with their keys. Installed software keeps its keys.

%s. With --from-api, the command
first reads them from the API into FILE (default: %s.json), and respects its rate limits.
$%s or --token-file has %s.

Each license becomes a row of FILE.csv, and the command sends the rows as licet licenses import
does. FILE.csv.results.csv has the results. FILE.left.csv has licenses that can't be imported.
--dry-run sends nothing: it prints how each value is converted, which data is not imported, and
which products do not exist.

If the command is interrupted or killed, repeat it to continue. Other flags make other rows: the
import begins again if the service has granted none yet, and ends with an error otherwise.

With the scope account:read, the command leaves out licenses whose keys the account takes for an
earlier one. With products:read, a dry run finds the products that do not exist.`, service.Title, files, service.Name, tokenVariable,
			service.Token),
		example: fmt.Sprintf(`  licet import %[1]s --from-api %[2]s --dry-run
  licet import %[1]s --from-api %[2]s --product 4711=editor`, service.Name, service.API),
		scope: "licenses", resumes: true,
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.BoolVar(&f.dry, "dry-run", false, "only show what the import would do")
			fs.StringVar(&f.fetch.From, "from-api", "", "`URL` of the API to read from, like "+service.API)
			fs.StringVar(&f.tokenFile, "token-file", "", "`file` with "+service.Token+" ($"+tokenVariable+")")
			fs.StringArrayVar(&f.products, "product", nil,
				"`FROM=TO`: licenses of product FROM become licenses of product_id TO; can be repeated")
			fs.IntVar(&f.set.MaxDevices, "max-devices", 0, "`number` of devices of a license without a limit; 0: any")
			parallelFlag(fs, &f.im)
		},
		run: func(c *session, args []string) error {
			f.session = c
			return f.run(args)
		},
	})
}

func (f *foreignImport) run(args []string) error {
	path := cmp.Or(append(args, "")[0], f.service.Name+".json")
	if len(args) == 0 && f.fetch.From == "" {
		return BadUsage("name a file, or where to read from: --from-api %s", f.service.API)
	}
	if err := checkParallel(&f.im); err != nil {
		return err
	}
	f.set.Products = map[string]string{}
	for _, text := range f.products {
		from, to, ok := cutLast(text, "=")
		if !ok || from == "" || to == "" {
			return BadUsage("--product is %q: write the product of %s, = and a product_id", text, f.service.Title)
		}
		f.set.Products[from] = to
	}
	if f.fetch.From != "" {
		if err := f.read(path); err != nil {
			return err
		}
	}
	if !f.dry { // an import that continues must know how keys are matched, or the rows differ
		if err := f.probe(); err != nil {
			return err
		}
	}
	f.im.Input, f.im.ExternalKeys = path+".csv", f.externalKeys()
	f.set.ExternalKeys = f.im.ExternalKeys
	report, err := f.convert(path)
	if err != nil {
		return err
	}
	f.warnOfProducts(path, report)
	if f.dry {
		return f.report(path, report)
	}
	fmt.Fprintln(f.stderr, f.summary(path, report))
	return f.runImport(f.im)
}

// cutLast cuts a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// read reads the API into a file, unless the file is complete.
func (f *foreignImport) read(path string) error {
	switch _, err := os.Stat(path); {
	case err == nil:
		fmt.Fprintf(f.stderr, "%s: complete; to read the API again, name another file\n", path)
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f.fetch.Token = f.setup.env(tokenVariable)
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return err
		}
		f.fetch.Token = strings.TrimSpace(string(text))
	}
	if f.fetch.Token == "" || strings.ContainsAny(f.fetch.Token, " \t\r\n") {
		return BadUsage("$%s or --token-file must have %s, and nothing else", tokenVariable, f.service.Token)
	}
	bar := terminal.NewMeter(f.stderr, "read", false)
	f.fetch.Progress = func(responses int) { bar.Set(int64(responses), -1) }
	err := f.service.Fetch(f.ctx, path, f.fetch)
	bar.Clear()
	var broke *bulk.BrokenOffError
	if errors.As(err, &broke) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("interrupted %s; repeat the command to continue: %w", broke.Where, broke.Cause)
	}
	return err
}

// convert writes the rows. An import of other rows that has begun either begins again, or is an error. A dry run
// changes no import that has begun.
func (f *foreignImport) convert(path string) (report migrate.Report, err error) {
	err = bulk.ReplaceFile(path+".left.csv", func(left io.Writer) error {
		return bulk.ReplaceInput(f.im.Input, f.dry, func(rows io.Writer) (err error) {
			report, err = f.service.Convert(path, f.set, rows, left)
			return err
		})
	})
	return report, err
}

// summary says in one sentence what a file has.
func (f *foreignImport) summary(path string, r migrate.Report) string {
	text := fmt.Sprintf("%s: %s of %s", path, counted(r.Licenses, "license"), f.service.Title)
	if r.Left > 0 {
		text += fmt.Sprintf("; %d of them can't be imported, see %s.left.csv", r.Left, path)
	}
	if r.Repeated > 0 {
		text += fmt.Sprintf("; %d more with the key of an earlier one", r.Repeated)
	}
	if r.Keyless > 0 {
		text += fmt.Sprintf("; %s without a license key", counted(r.Keyless, "sale"))
	}
	if r.Total > 0 && r.Total != r.Licenses+r.Repeated+r.Keyless {
		text += fmt.Sprintf("; %s counts %d: if licenses were deleted meanwhile, read the API again into another file",
			f.service.Title, r.Total)
	}
	return text
}
