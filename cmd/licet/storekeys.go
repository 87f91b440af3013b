package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/cmd/licet/internal/terminal"
	"licet/kv"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/service"
	"licet/node/store"
)

// storeKeysConfig contains the settings of licet store keys.
type storeKeysConfig struct {
	storeConfig
	MasterKeyFile string
	Account       string
	Mode          string
	Output        string

	// Flags of create:
	Name      string
	Scopes    []string
	ExpiresAt string
	Signed    bool
	// Flags of rotate:
	Overlap time.Duration
	// Flags of revoke:
	Yes bool
}

// addFlags adds the flags that all commands of licet store keys share. A command adds its own flags first.
func (c *storeKeysConfig) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.Account, "account", "", "`account` of the API key, such as acct_acme")
	fs.StringVar(&c.Mode, "mode", "", "`mode` of the API key: test or live")
	c.storeConfig.addFlags(fs)
	fs.StringVarP(&c.Output, "output", "o", "table", "output `format`: table or json")
	fs.StringVar(&c.MasterKeyFile, "master-key-file", "",
		"`file` with the master keys of the nodes, the current key first; create and rotate need it, unless "+
			"--data-dir is set")
	nameVariables(fs)
	cli.Complete(cmd, "mode", "test", "live")
	cli.Complete(cmd, "output", "table", "json")
}

func (c *storeKeysConfig) validate() error {
	if !licensing.ValidAccountID(c.Account) {
		return badUsage("--account is %q: write acct_ followed by a-z, 0-9 or _, at most 64 characters in all",
			c.Account)
	}
	if c.owner().Mode != licensing.Test && c.owner().Mode != licensing.Live {
		return badUsage("--mode is %q: write test or live", c.Mode)
	}
	if c.Output != "table" && c.Output != "json" {
		return badUsage("--output is %q: write table or json", c.Output)
	}
	if c.Overlap < 0 || c.Overlap > service.MaxOverlap {
		return badUsage("--overlap is %v: write a duration from 0s to %v", c.Overlap, service.MaxOverlap)
	}
	return c.storeConfig.validate()
}

// owner returns the account and mode of the API key.
func (c *storeKeysConfig) owner() licensing.Owner {
	return licensing.Owner{AccountID: c.Account, Mode: licensing.Mode(c.Mode)}
}

// newKey returns the API key that the flags describe. Every error is a usage error.
func (c *storeKeysConfig) newKey() (service.NewKey, error) {
	key := licensing.APIKey{Owner: c.owner(), Name: c.Name, Scopes: c.Scopes}
	if c.ExpiresAt != "" {
		var err error
		if key.ExpiresAt, err = time.Parse(time.RFC3339, c.ExpiresAt); err != nil {
			return service.NewKey{}, badUsage("--expires-at is %q: write a time such as 2031-01-31T00:00:00Z",
				c.ExpiresAt)
		}
		if key.ExpiresAt.IsZero() { // a zero time means that the key never expires
			return service.NewKey{}, badUsage("--expires-at must be in the future")
		}
	}
	var problem *licensing.Error
	if errors.As(key.Validate(time.Now()), &problem) {
		first := problem.Fields[0]
		return service.NewKey{}, badUsage("--%s %s", strings.ReplaceAll(first.Field, "_", "-"), first.Problem)
	}
	return service.NewKey{
		Owner:            key.Owner,
		Name:             key.Name,
		Scopes:           key.Scopes,
		ExpiresAt:        key.ExpiresAt,
		RequireSignature: c.Signed,
	}, nil
}

// ring reads the master keys: from --master-key-file, or from the data directory.
func (c *storeKeysConfig) ring() (keyring.MasterRing, error) {
	path := c.MasterKeyFile
	if path == "" && c.DataDir != "" {
		path = filepath.Join(c.DataDir, masterFile)
	}
	if path == "" {
		return keyring.MasterRing{},
			badUsage("--master-key-file must name the file with the master keys of the nodes")
	}
	return readMasterRing(path)
}

func newStoreKeysCommand(stdout, stderr io.Writer) *cobra.Command {
	cmd := cli.Group("keys", newStoreKeysCreate(stdout, stderr), newStoreKeysList(stderr),
		newStoreKeysRevoke(stdout, stderr), newStoreKeysRotate(stdout, stderr))
	cmd.Short = "Create, list, revoke and rotate API keys on the store"
	cmd.Long = `Create, list, revoke and rotate API keys on the store, without a service. Running nodes need
no restart: they accept new API keys and refuse revoked ones.

An API key belongs to one account and one mode. Create the first API key of an account here:
it creates the account.

To call a service instead, see licet keys --help.`
	cmd.Example = `  licet store keys create --account acct_acme --mode test --name shop --scopes orders,licenses \
    --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --master-key-file master.keys
  licet store keys list --account acct_acme --mode test --etcd-endpoints 10.0.0.1:2379
  licet store keys revoke ` + exampleKey + ` --account acct_acme --mode test --etcd-endpoints 10.0.0.1:2379`
	return cmd
}

// exampleKey is the id of an API key in help texts.
const exampleKey = "key_vq01jd4q8x2m7r3n5t9v1w4y6z8a"

func newStoreKeysCreate(stdout, stderr io.Writer) *cobra.Command {
	var cfg storeKeysConfig
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an API key and print it once",
		Long: `Create an API key with its secret and print both. Licet can't print them again: the store keeps
only a hash of the API key, and derives the secret from a master key.`,
		Example: `  licet store keys create --account acct_acme --mode live --name shop --scopes orders,licenses:read \
    --etcd-endpoints 10.0.0.1:2379 --master-key-file master.keys --output json
  licet store keys create --account acct_acme --mode test --name all --scopes '*' --data-dir ./licet-data`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			key, err := cfg.newKey()
			if err != nil {
				return err
			}
			return cfg.onStore(cmd.Context(), stderr, true, func(ctx context.Context, maker service.Keymaker) error {
				issued, err := maker.Create(ctx, key)
				if licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown {
					return fmt.Errorf("the store may have created the API key %s; revoke it if licet store keys list "+
						"shows it: %w",
						issued.Key.ID, err)
				}
				if err != nil {
					return err
				}
				if err := cfg.show(stdout, createdRows(issued)); err != nil {
					return fmt.Errorf("created the API key %s but could not print it; revoke the key: %w",
						issued.Key.ID, err)
				}
				fmt.Fprintln(stderr, "Keep the API key and its secret: licet can't print them again.")
				return nil
			})
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&cfg.Name, "name", "", "`name` of the API key, for people")
	cli.ScopeFlag(cmd, &cfg.Scopes)
	fs.StringVar(&cfg.ExpiresAt, "expires-at", "",
		"`time` when the API key expires, such as 2031-01-31T00:00:00Z (default: never)")
	fs.BoolVar(&cfg.Signed, "require-signature", false,
		"refuse requests with this API key that are not signed with its secret")
	cfg.addFlags(cmd)
	return cmd
}

func newStoreKeysList(stderr io.Writer) *cobra.Command {
	var cfg storeKeysConfig
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the API keys of an account and mode, newest first",
		Example: `  licet store keys list --account acct_acme --mode test --etcd-endpoints 10.0.0.1:2379
  licet store keys list --account acct_acme --mode live --etcd-endpoints 10.0.0.1:2379 --output json`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return cfg.onStore(cmd.Context(), stderr, false, func(ctx context.Context, maker service.Keymaker) error {
				var keys []licensing.APIKey
				for page := (store.Page{Limit: store.MaxListPage}); ; {
					list, err := maker.Store.ListAPIKeys(ctx, cfg.owner(), page)
					if err != nil {
						return err
					}
					keys = append(keys, list.Items...)
					if page.Before = list.Next; page.Before == "" {
						return cfg.showList(cmd, keys, time.Now())
					}
				}
			})
		},
	}
	cfg.addFlags(cmd)
	cli.AddWide(cmd)
	return cmd
}

func newStoreKeysRevoke(stdout, stderr io.Writer) *cobra.Command {
	var cfg storeKeysConfig
	cmd := &cobra.Command{
		Use:   "revoke KEY_ID",
		Short: "Revoke an API key for good",
		Long: `Revoke an API key for good: within 2 seconds every node refuses it. The command asks for
confirmation on a terminal. Revoking a revoked API key changes nothing.`,
		Example: `  licet store keys revoke ` + exampleKey + ` --account acct_acme --mode test \
    --etcd-endpoints 10.0.0.1:2379`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return cfg.onStore(cmd.Context(), stderr, false, func(ctx context.Context, maker service.Keymaker) error {
				if !cfg.Yes && terminal.Is(cmd.InOrStdin()) {
					if err := cfg.confirm(cmd, maker.Store, args[0], stderr); err != nil {
						return err
					}
					// The deadline starts again: the user may have taken longer to answer than the deadline.
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(cmd.Context(), storeTimeout)
					defer cancel()
				}
				key, err := maker.Revoke(ctx, cfg.owner(), args[0])
				if err != nil {
					return cfg.nameKey(args[0], err)
				}
				return cfg.show(stdout, revokedRows(key))
			})
		},
	}
	cmd.Flags().BoolVar(&cfg.Yes, "yes", false, "do not ask for confirmation")
	cfg.addFlags(cmd)
	return cmd
}

func newStoreKeysRotate(stdout, stderr io.Writer) *cobra.Command {
	var cfg storeKeysConfig
	cmd := &cobra.Command{
		Use:   "rotate KEY_ID",
		Short: "Replace the secret of an API key and print the new one once",
		Long: `Derive a new secret for an API key from the first master key of the ring, and print the secret.
The previous secret stays valid for the overlap; at most two secrets are valid. The API key
itself does not change.`,
		Example: `  licet store keys rotate ` + exampleKey + ` --account acct_acme --mode test \
    --etcd-endpoints 10.0.0.1:2379 --master-key-file master.keys --overlap 48h`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cfg.complete(cmd.Flags(), cfg.validate); err != nil {
				return err
			}
			return cfg.onStore(cmd.Context(), stderr, true, func(ctx context.Context, maker service.Keymaker) error {
				issued, err := maker.Rotate(ctx, cfg.owner(), args[0], cfg.Overlap)
				if err != nil {
					return cfg.nameKey(args[0], err)
				}
				if err := cfg.show(stdout, rotatedRows(issued)); err != nil {
					return fmt.Errorf("created a new secret but could not print it; rotate the API key again: %w", err)
				}
				fmt.Fprintln(stderr, "Keep the secret: licet can't print it again.")
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&cfg.Overlap, "overlap", service.DefaultOverlap,
		"how long the previous secret stays valid, 0s to 720h")
	cfg.addFlags(cmd)
	return cmd
}

// onStore opens the store and runs work on it, with the master keys if needsRing is set.
func (c *storeKeysConfig) onStore(
	ctx context.Context, stderr io.Writer, needsRing bool, work func(context.Context, service.Keymaker) error,
) (err error) {
	maker := service.Keymaker{Clock: time.Now, Entropy: rand.Reader}
	if needsRing {
		if maker.Ring, err = c.ring(); err != nil {
			return err
		}
	}
	return c.withStore(ctx, stderr, func(ctx context.Context, store *kv.Store) error {
		maker.Store = store
		if needsRing {
			var err error
			if maker.Check, err = store.KeyCheck(ctx, rand.Reader); err != nil {
				return err
			}
		}
		return work(ctx, maker)
	})
}

// nameKey adds the API key to an error.
func (c *storeKeysConfig) nameKey(id string, err error) error {
	return fmt.Errorf("%s of %s in %s mode: %w", id, c.Account, c.Mode, err)
}

// confirm asks whether to revoke an API key.
func (c *storeKeysConfig) confirm(cmd *cobra.Command, store store.Keys, id string, stderr io.Writer) error {
	key, err := store.FindAPIKey(cmd.Context(), c.owner(), id)
	if err == nil && key == nil {
		err = licensing.ErrAPIKeyNotFound
	}
	if err != nil {
		return c.nameKey(id, err)
	}
	question := fmt.Sprintf("Revoke %s (%s) of %s in %s mode, for good?", id, key.Name, c.Account, c.Mode)
	if terminal.Confirm(cmd.Context(), cmd.InOrStdin(), stderr, question) != nil {
		return errors.New("not revoked")
	}
	return nil
}
