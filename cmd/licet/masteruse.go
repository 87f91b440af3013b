package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/cmd/licet/internal/cli"
	"licet/kv"
	"licet/licensing/keyring"
)

// masterConfig contains the settings of the commands that read the master keys of a store.
type masterConfig struct {
	storeConfig
	MasterKeyFile string
	Output        string
}

func (c *masterConfig) addFlags(fs *pflag.FlagSet) {
	c.storeConfig.addFlags(fs)
	fs.StringVar(&c.MasterKeyFile, "master-key-file", "",
		"`file` with the master keys of the nodes (optional)")
	nameVariables(fs)
}

func (c *masterConfig) validate() error {
	if c.Output != "table" && c.Output != "json" {
		return badUsage("--output is %q: write table or json", c.Output)
	}
	return c.storeConfig.validate()
}

// ring reads the ring of the nodes, from --master-key-file or the data directory; given reports whether there is one.
func (c *masterConfig) ring() (ring keyring.MasterRing, given bool, err error) {
	path := c.MasterKeyFile
	if path == "" && c.DataDir != "" {
		path = filepath.Join(c.DataDir, masterFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return keyring.MasterRing{}, false, nil // a restored directory may have no ring yet
		}
	}
	if path == "" {
		return keyring.MasterRing{}, false, nil
	}
	ring, err = readMasterRing(path)
	return ring, true, err
}

func newMasterKeyStatus(stdout, stderr io.Writer) *cobra.Command {
	var cfg masterConfig
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Count the secrets derived from each master key",
		Long: `For each master key that the store knows, count the API keys and webhook endpoints whose
secrets are derived from it: current secrets, and previous secrets during the overlap of a
rotation. Revoked API keys do not count. One master key seals the id key of the store. Master
keys also seal the root keys for receipts, one of each account and mode that has any. A master
key with all counts at 0 can be retired, unless an API key, a record of webhook endpoints or of
receipt keys, or the id key can't be read: "unreadable" counts these.

With --master-key-file the table also shows the place of each master key in the ring.`,
		Example: `  licet store master-key status --etcd-endpoints 10.0.0.1:2379 --master-key-file master.keys
  licet store master-key status --etcd-endpoints 10.0.0.1:2379 --output json`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			ring, given, err := cfg.ring()
			if err != nil {
				return err
			}
			return cfg.withStore(cmd.Context(), stderr, func(ctx context.Context, store *kv.Store) error {
				found, err := store.MasterUses(ctx, time.Now())
				if err != nil {
					return err
				}
				rows := masterRows(found.Uses, ring, given)
				if cfg.Output == "json" {
					return json.NewEncoder(stdout).Encode(map[string]any{
						"master_keys": rows, "unreadable": found.Unreadable,
					})
				}
				if err := showMasters(stdout, rows); err != nil || found.Unreadable == 0 {
					return err
				}
				_, err = fmt.Fprintln(stdout, found.SayUnreadable())
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&cfg.Output, "output", "o", "table", "output `format`: table or json")
	cfg.addFlags(cmd.Flags())
	return cmd
}

func newMasterKeyRetire(stdout, stderr io.Writer) *cobra.Command {
	cfg := masterConfig{Output: "table"}
	cmd := &cobra.Command{
		Use:   "retire MASTER_KEY_ID",
		Short: "Retire a master key for good",
		Long: `Retire a master key for good: no node needs it any more, and no node derives secrets from it.

The command refuses while the master key seals the id key of the store or root keys for
receipts, and while a secret of an API key that is not revoked, or of a webhook endpoint, is
derived from the master key.
Previous secrets count until ten minutes after the end of their overlap. The command also
refuses while it can't read an API key, a record of webhook endpoints or the id key; the
message names the unreadable key or record.

Remove the line of the master key from the ring afterwards, not before. Retiring a retired
master key changes nothing.`,
		Example: `  licet store master-key retire mk_01jd4q8x2m7r3n5t9v1w4y6z8a --etcd-endpoints 10.0.0.1:2379 \
    --master-key-file master.keys`,
		Args: oneMasterKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			ring, given, err := cfg.ring()
			if err != nil {
				return err
			}
			if given && ring.Current().ID == args[0] {
				return fmt.Errorf("the master key %q is first in the ring, so nodes derive secrets from it: put "+
					"another line first and restart the nodes", args[0])
			}
			return cfg.withStore(cmd.Context(), stderr, func(ctx context.Context, store *kv.Store) error {
				if err := store.RetireMaster(ctx, args[0], time.Now()); err != nil {
					return err
				}
				_, err := fmt.Fprintf(stdout, "%s is retired; remove its line from the ring\n", args[0])
				return err
			})
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}

// oneMasterKeyID accepts one master key id. It refuses a line of a ring without repeating the line, which is a secret.
func oneMasterKeyID(cmd *cobra.Command, args []string) error {
	if err := cli.Arguments(cmd, args); err != nil {
		return err
	}
	if strings.Contains(args[0], ":") {
		return badUsage("MASTER_KEY_ID must be the id alone, without the master key: see licet store master-key status")
	}
	return nil
}

// masterRow describes one master key.
type masterRow struct {
	ID       string `json:"id"`
	Status   string `json:"status"` // in use, unused, retired, or not used yet
	Ring     string `json:"ring"`   // first, known or missing; - without a ring
	Keys     int    `json:"api_keys"`
	Webhooks int    `json:"webhook_endpoints"`
	IDKey    bool   `json:"id_key"`    // the master key seals the id key of the store
	Roots    int    `json:"root_keys"` // for receipts, which the master key seals
	Previous int    `json:"previous_secrets"`
	Until    any    `json:"previous_until"`
}

// masterRows returns the master keys of a store, followed by the keys that only the ring has.
func masterRows(uses []kv.MasterUse, ring keyring.MasterRing, given bool) []masterRow {
	rows := []masterRow{}
	listed := map[string]bool{}
	for i := range uses {
		u := &uses[i]
		row := masterRow{
			ID: u.ID, Status: "unused", Ring: ringPlace(ring, given, u.ID),
			Keys: u.Keys, Webhooks: u.Webhooks, Previous: u.Previous, Until: timestamp(u.Until), IDKey: u.IDKey,
			Roots: u.Roots,
		}
		switch {
		case u.Retired:
			row.Status = "retired"
		case u.InUse():
			row.Status = "in use"
		}
		rows = append(rows, row)
		listed[u.ID] = true
	}
	for _, id := range ring.IDs() {
		if !listed[id] {
			rows = append(rows, masterRow{ID: id, Status: "not used yet", Ring: ringPlace(ring, given, id)})
		}
	}
	return rows
}

// ringPlace returns the place of a master key in the ring.
func ringPlace(ring keyring.MasterRing, given bool, id string) string {
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

// showMasters prints rows as a table.
func showMasters(stdout io.Writer, rows []masterRow) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MASTER KEY\tSTATUS\tRING\tID KEY\tROOT KEYS\tAPI KEYS\tWEBHOOKS\tPREVIOUS SECRETS\tGOOD UNTIL")
	for _, r := range rows {
		seals := "-"
		if r.IDKey {
			seals = "sealed"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", r.ID, r.Status, r.Ring, seals, r.Roots, r.Keys,
			r.Webhooks, r.Previous, plain(r.Until))
	}
	return table.Flush()
}
