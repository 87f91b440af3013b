package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/kv"
	"licet/licensing"
)

// masterConfig is the settings of the commands that look at the master keys of
// a store.
type masterConfig struct {
	storeConfig
	MasterKeyFile string
	Output        string
}

func (c *masterConfig) addFlags(fs *pflag.FlagSet) {
	c.storeConfig.addFlags(fs)
	fs.StringVar(&c.MasterKeyFile, "master-key-file", "", "`file` with the master keys of the nodes, to compare with; not needed")
	nameVariables(fs)
}

func (c *masterConfig) complete(cmd *cobra.Command) error {
	if err := c.fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
		return err
	}
	if c.Output != "table" && c.Output != "json" {
		return badUsage("--output is %q: it must be table or json", c.Output)
	}
	return c.validate()
}

// ring reads the ring to compare with; given is false where there is none.
func (c *masterConfig) ring() (ring licensing.MasterRing, given bool, err error) {
	path := c.MasterKeyFile
	if path == "" && c.DataDir != "" {
		path = filepath.Join(c.DataDir, masterFile)
	}
	if path == "" {
		return licensing.MasterRing{}, false, nil
	}
	ring, err = readMasterRing(path)
	return ring, true, err
}

func newMasterKeyStatus(stdout, stderr io.Writer) *cobra.Command {
	var cfg masterConfig
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell what is derived from each master key of a store",
		Long: `Tell of each master key that a store uses, or has used, how many API keys and
webhook endpoints have a secret that is derived from it: their present one, or the one
before while the overlap of a rotation lasts. API keys that are revoked don't count.
Where all are 0 it can be retired. With a ring it also tells where the key stands in it.`,
		Example: `  licet master-key status --etcd-endpoints 10.0.0.1:2379 --master-key-file master.keys
  licet master-key status --etcd-endpoints 10.0.0.1:2379 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.complete(cmd); err != nil {
				return err
			}
			ring, given, err := cfg.ring()
			if err != nil {
				return err
			}
			return cfg.withStore(cmd.Context(), stderr, func(ctx context.Context, store *kv.Store) error {
				uses, err := store.MasterUses(ctx, time.Now())
				if err != nil {
					return err
				}
				rows := masterRows(uses, ring, given)
				if cfg.Output == "json" {
					return json.NewEncoder(stdout).Encode(map[string]any{"master_keys": rows})
				}
				return showMasters(stdout, rows)
			})
		},
	}
	cmd.Flags().StringVarP(&cfg.Output, "output", "o", "table", "`format` of what is printed: table or json")
	cfg.addFlags(cmd.Flags())
	return cmd
}

func newMasterKeyRetire(stdout, stderr io.Writer) *cobra.Command {
	cfg := masterConfig{Output: "table"}
	cmd := &cobra.Command{
		Use:   "retire MASTER_KEY_ID",
		Short: "Take a master key out of use, for good",
		Long: `Take a master key out of use, for good: from then on no node needs it, and none derives
from it. It is refused while the secret of any API key that is not revoked, or of any
webhook endpoint, is derived from it, or one that a rotation has replaced not more than
ten minutes after the end of its overlap. Its line may be taken out of the ring
afterwards, not before. Retiring a key again changes nothing.`,
		Example: `  licet master-key retire mk_01jd4q8x2m7r3n5t9v1w4y6z8a --etcd-endpoints 10.0.0.1:2379 --master-key-file master.keys`,
		Args:    oneMasterKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cfg.complete(cmd); err != nil {
				return err
			}
			ring, given, err := cfg.ring()
			if err != nil {
				return err
			}
			if given && ring.Current().ID == args[0] {
				return fmt.Errorf("the master key %q stands first in the ring, so that nodes derive from it: put another line first and start them again", args[0])
			}
			return cfg.withStore(cmd.Context(), stderr, func(ctx context.Context, store *kv.Store) error {
				if err := store.RetireMaster(ctx, args[0], time.Now()); err != nil {
					return err
				}
				_, err := fmt.Fprintf(stdout, "%s is retired; its line may be taken out of the ring\n", args[0])
				return err
			})
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}

func oneMasterKeyID(_ *cobra.Command, args []string) error {
	if len(args) != 1 || strings.Contains(args[0], ":") {
		// A whole line is a secret, and must not be repeated.
		return badUsage("name one master key by its id alone; licet master-key status has them")
	}
	return nil
}

// masterRow is what is told of one master key.
type masterRow struct {
	ID       string `json:"id"`
	Status   string `json:"status"` // in use, unused, retired, or not used yet
	Ring     string `json:"ring"`   // its place there
	Keys     int    `json:"api_keys"`
	Webhooks int    `json:"webhook_endpoints"`
	Previous int    `json:"previous_secrets"`
	Until    any    `json:"previous_until"`
}

// masterRows tells of the keys of a store, and behind them of those that only
// the ring has.
func masterRows(uses []kv.MasterUse, ring licensing.MasterRing, given bool) []masterRow {
	rows := []masterRow{}
	told := map[string]bool{}
	for i := range uses {
		u := &uses[i]
		row := masterRow{ID: u.ID, Status: "unused", Ring: ringPlace(ring, given, u.ID), Keys: u.Keys, Webhooks: u.Webhooks, Previous: u.Previous, Until: stamp(u.Until)}
		switch {
		case u.Retired:
			row.Status = "retired"
		case u.InUse():
			row.Status = "in use"
		}
		rows = append(rows, row)
		told[u.ID] = true
	}
	for _, id := range ring.IDs() {
		if !told[id] {
			rows = append(rows, masterRow{ID: id, Status: "not used yet", Ring: ringPlace(ring, given, id)})
		}
	}
	return rows
}

func ringPlace(ring licensing.MasterRing, given bool, id string) string {
	if !given {
		return "-"
	}
	for i, have := range ring.IDs() {
		switch {
		case have == id && i == 0:
			return "first"
		case have == id:
			return "known"
		}
	}
	return "missing"
}

func showMasters(stdout io.Writer, rows []masterRow) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER KEY\tSTATUS\tRING\tAPI KEYS\tWEBHOOKS\tPREVIOUS SECRETS\tGOOD UNTIL")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", r.ID, r.Status, r.Ring, r.Keys, r.Webhooks, r.Previous, plain(r.Until))
	}
	return table.Flush()
}
