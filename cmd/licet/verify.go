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

	"licet/cmd/licet/internal/cli"
	"licet/cmd/licet/internal/terminal"
	"licet/kv"
	"licet/kv/verify"
	"licet/licensing"
	"licet/licensing/keyring"
)

func newVerifyCommand(stdout, stderr io.Writer) *cobra.Command {
	var cfg masterConfig
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check a store for contradictions",
		Long: `Read a whole store at one revision and check it for contradictions:

  - each license has the devices that it counts, and no more devices than it allows;
  - orders and licenses refer to each other;
  - each index entry has its target, and each target has its index entries;
  - every value can be read, and no key is left over.

Notes name accounts whose usage record differs much from what they store. Such a difference is
not a violation: the daily recount corrects the record.

With --master-key-file the command also checks that this service made each license id, and
that each grant has its licenses.

The command changes nothing; a service may run meanwhile. Exit code 0 means no violations,
exit code 1 violations or an error, exit code 2 a wrong flag. The output names licenses by
their ids, which activate nothing.`,
		Example: `  licet store verify --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --master-key-file master.keys
  licet store verify --data-dir ./licet-data                                  a stopped licet dev
  licet store verify --etcd-endpoints unix://$PWD/licet-data/run/etcd.sock    a running licet dev
  licet store verify … --output json`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return runVerify(cmd.Context(), cfg, stdout, stderr)
		},
	}
	cmd.Flags().StringVarP(&cfg.Output, "output", "o", "table", "output `format`: table or json")
	cfg.addFlags(cmd.Flags())
	return cmd
}

func runVerify(ctx context.Context, cfg masterConfig, stdout, stderr io.Writer) error {
	ring, given, err := cfg.ring()
	if err != nil {
		return err
	}
	return cfg.use(ctx, stderr, func(ctx context.Context, store kv.Config) error {
		return cfg.verify(ctx, store, ring, given, stdout, stderr)
	})
}

// verify verifies a store, with the master keys in ring if they are given.
func (c *masterConfig) verify(
	ctx context.Context, store kv.Config, ring keyring.MasterRing, given bool, stdout, stderr io.Writer,
) (err error) {
	opened, err := kv.Open(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()

	var keys *keyring.LicenseKeys
	if given {
		if keys, err = opened.ReadLicenseKeys(ctx, ring); err != nil {
			return err
		}
	}
	bar := terminal.NewMeter(stderr, "verify", false)
	total := bar.Total(func() (int64, error) { return verify.CountKeys(ctx, opened) })
	var out verifyOutput = &verifyTable{w: stdout}
	if c.Output == "json" {
		out = &verifyJSON{w: stdout}
	}
	out.begin()
	summary, err := verify.Run(ctx, opened, verify.Config{
		Keys:     keys,
		Progress: func(keys int64) { bar.Set(keys, total) },
		Report: func(v verify.Violation) {
			bar.Clear()
			out.violation(v)
		},
	})
	bar.Clear()
	return errors.Join(verdict(summary, err), out.end(summary, err))
}

// verdict returns the error that ends a verification: the error that cut the verification short, or an error that
// counts the violations.
func verdict(summary verify.Summary, err error) error {
	switch {
	case err != nil && summary.Violations > 0:
		return fmt.Errorf("the verification is incomplete, and it found violations: %w", err)
	case err != nil:
		return fmt.Errorf("the verification is incomplete: %w", err)
	case summary.Violations > 0:
		return fmt.Errorf("the store contradicts itself: violations: %d", summary.Violations)
	}
	return nil
}

// verifyOutput prints each violation when the verification finds it, and the summary at the end.
type verifyOutput interface {
	begin()
	violation(verify.Violation)
	end(verify.Summary, error) error // returns the first error of printing
}

// printer prints until the first error, and keeps that error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) print(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// verifyTable prints lines for people.
type verifyTable printer

func (t *verifyTable) begin() {}

func (t *verifyTable) violation(v verify.Violation) {
	(*printer)(t).print("%s %s: %s (%s)\n", v.Family, v.Key, v.Problem, v.Rule)
}

func (t *verifyTable) end(summary verify.Summary, err error) error {
	p := (*printer)(t)
	table := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FAMILY\tKEYS")
	for _, f := range summary.Families {
		fmt.Fprintf(table, "%s\t%d\n", f.Name, f.Keys)
	}
	if p.err == nil {
		p.err = table.Flush()
	}
	p.print("\n%d keys at revision %d in %v\n", summary.Keys, summary.Revision,
		summary.Duration.Round(time.Millisecond))
	if summary.OtherKeys > 0 {
		p.print("%d other keys in this etcd do not belong to this service\n", summary.OtherKeys)
	}
	for _, d := range summary.Drifts {
		p.print("note: the usage record of %s (%s) says %d bytes in %d keys, and the account stores %d bytes in %d "+
			"keys; the next recount corrects it\n", d.Owner.AccountID, d.Owner.Mode, d.Recorded.Bytes, d.Recorded.Keys,
			d.Counted.Bytes, d.Counted.Keys)
	}
	if more := summary.Drifted - int64(len(summary.Drifts)); more > 0 {
		p.print("note: %d more usage records differ\n", more)
	}
	if !summary.IDs {
		p.print("note: license ids were not checked: set --master-key-file to check them\n")
	}
	switch {
	case summary.Violations > 0:
		p.print("violations: %d\n", summary.Violations)
	case err == nil:
		p.print("no violations\n")
	}
	return p.err
}

// verifyJSON prints one JSON object piece by piece: the violations may not fit into memory.
type verifyJSON struct {
	w    io.Writer
	err  error
	some bool
}

func (j *verifyJSON) begin() { j.print(`{"violations":[`) }

func (j *verifyJSON) violation(v verify.Violation) {
	if j.some {
		j.print(",")
	}
	j.some = true
	j.print("\n")
	j.value(v)
}

func (j *verifyJSON) end(summary verify.Summary, err error) error {
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
		"ids_checked":      summary.IDs,
		"usage_drifts":     driftsJSON(summary.Drifts),
		"usage_drifted":    summary.Drifted,
		"duration_seconds": summary.Duration.Seconds(),
		"error":            problem,
	})
	j.print("}\n")
	return j.err
}

// usageDrift is a usage record that differs from what its account stores.
type usageDrift struct {
	AccountID     string         `json:"account_id"`
	Mode          licensing.Mode `json:"mode"`
	RecordedBytes int64          `json:"recorded_bytes"`
	RecordedKeys  int64          `json:"recorded_keys"`
	StoredBytes   int64          `json:"stored_bytes"`
	StoredKeys    int64          `json:"stored_keys"`
}

func driftsJSON(drifts []verify.UsageDrift) []usageDrift {
	all := make([]usageDrift, len(drifts))
	for i, d := range drifts {
		all[i] = usageDrift{
			AccountID: d.Owner.AccountID, Mode: d.Owner.Mode, RecordedBytes: d.Recorded.Bytes,
			RecordedKeys: d.Recorded.Keys,
			StoredBytes:  d.Counted.Bytes, StoredKeys: d.Counted.Keys,
		}
	}
	return all
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
