package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/cmd/licet/internal/terminal"
	"licet/kv"
)

// verifyConfig is the settings of licet verify.
type verifyConfig struct {
	storeConfig
	Output   string
	ShowKeys bool
}

func (c *verifyConfig) addFlags(fs *pflag.FlagSet) {
	c.storeConfig.addFlags(fs)
	fs.StringVarP(&c.Output, "output", "o", "table", "`format` of what is printed: table or json")
	fs.BoolVar(&c.ShowKeys, "show-keys", false, "print license keys, which open what they are for; a hash stands for each otherwise")
	nameVariables(fs)
}

func (c *verifyConfig) validate() error {
	if c.Output != "table" && c.Output != "json" {
		return badUsage("--output is %q: it must be table or json", c.Output)
	}
	return c.storeConfig.validate()
}

func newVerifyCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg verifyConfig
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that a store does not contradict itself",
		Long: `Read a whole store at one revision and prove that it does not contradict itself:
each license has the devices it counts, and no more than it allows; orders and
licenses name each other; every entry of an index has its target, and every target
its entry; nothing is left over, and everything can be read.

It changes nothing, and a service may go on meanwhile. It ends with exit code 0
where all is well, 1 with a line for each violation otherwise, and 2 after a wrong
flag. A license key is the whole secret of a license: a hash stands for each.`,
		Example: `  licet verify --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379
  licet verify --data-dir ./licet-data                                  of a stopped licet dev
  licet verify --etcd-endpoints unix://$PWD/licet-data/run/etcd.sock    of a running one
  licet verify … --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.settle(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return runVerify(cmd.Context(), cfg, stdout, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}

func runVerify(ctx context.Context, cfg verifyConfig, stdout, stderr io.Writer) (err error) {
	store, leave, err := cfg.reach(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	opened, err := kv.Open(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()

	bar := terminal.NewMeter(stderr, "verify", false)
	total := bar.Total(func() (int64, error) { return opened.CountKeys(ctx) })
	var out verifyOutput = &verifyTable{w: stdout}
	if cfg.Output == "json" {
		out = &verifyJSON{w: stdout}
	}
	out.begin()
	summary, err := opened.Verify(ctx, kv.VerifyConfig{
		ShowKeys: cfg.ShowKeys,
		Progress: func(keys int64) { bar.Set(keys, total) },
		Report: func(v kv.Violation) {
			bar.Clear()
			out.violation(v)
		},
	})
	bar.Clear()
	return errors.Join(verdict(summary, err), out.end(summary, err))
}

// verdict is the error that a verification ends with: what kept it from being
// done, or that there are violations.
func verdict(summary kv.VerifySummary, err error) error {
	switch {
	case err != nil && summary.Violations > 0:
		return fmt.Errorf("not all was verified, and there are violations: %w", err)
	case err != nil:
		return fmt.Errorf("not all was verified: %w", err)
	case summary.Violations > 0:
		return fmt.Errorf("the store contradicts itself: violations: %d", summary.Violations)
	}
	return nil
}

// verifyOutput prints what is found, as it is found, and at last the summary.
type verifyOutput interface {
	begin()
	violation(kv.Violation)
	end(kv.VerifySummary, error) error // also of what could not be printed before
}

// printer keeps the first error of printing.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

type verifyTable printer

func (t *verifyTable) begin() {}

func (t *verifyTable) violation(v kv.Violation) {
	(*printer)(t).print("%s %s: %s (%s)\n", v.Family, v.Key, v.Problem, v.Rule)
}

func (t *verifyTable) end(summary kv.VerifySummary, err error) error {
	p := (*printer)(t)
	table := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FAMILY\tKEYS")
	for _, f := range summary.Families {
		fmt.Fprintf(table, "%s\t%d\n", f.Name, f.Keys)
	}
	if p.err == nil {
		p.err = table.Flush()
	}
	p.print("\n%d keys at revision %d in %v\n", summary.Keys, summary.Revision, summary.Duration.Round(time.Millisecond))
	if summary.OtherKeys > 0 {
		p.print("%d other keys in this etcd are not of this service\n", summary.OtherKeys)
	}
	switch {
	case summary.Violations > 0:
		p.print("violations: %d\n", summary.Violations)
	case err == nil:
		p.print("no violations\n")
	}
	return p.err
}

// verifyJSON prints one object, piece by piece: there may be more violations
// than fit into memory.
type verifyJSON struct {
	w    io.Writer
	err  error
	some bool
}

func (j *verifyJSON) begin() { j.print(`{"violations":[`) }

func (j *verifyJSON) violation(v kv.Violation) {
	if j.some {
		j.print(",")
	}
	j.some = true
	j.print("\n")
	j.value(v)
}

func (j *verifyJSON) end(summary kv.VerifySummary, err error) error {
	families := map[string]int64{}
	for _, f := range summary.Families {
		families[f.Name] = f.Keys
	}
	var problem *string
	if err != nil {
		text := err.Error()
		problem = &text
	}
	j.print("],\n\"summary\":")
	j.value(map[string]any{
		"revision":         summary.Revision,
		"keys":             summary.Keys,
		"families":         families,
		"other_keys":       summary.OtherKeys,
		"violations":       summary.Violations,
		"duration_seconds": summary.Duration.Seconds(),
		"error":            problem,
	})
	j.print("}\n")
	return j.err
}

func (j *verifyJSON) print(text string) {
	if j.err == nil {
		_, j.err = io.WriteString(j.w, text)
	}
}

func (j *verifyJSON) value(v any) {
	text, err := json.Marshal(v)
	j.err = errors.Join(j.err, err)
	j.print(string(text))
}
