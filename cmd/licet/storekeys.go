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
	"github.com/spf13/pflag"

	"licet/cmd/licet/internal/cli"
	"licet/cmd/licet/internal/terminal"
	"licet/kv"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// keysTimeout bounds what a command does on a store that it has reached.
const keysTimeout = 20 * time.Second

// keysConfig is the settings of the commands that work on API keys.
type keysConfig struct {
	storeConfig
	setup         cli.Setup
	Service       cli.Service
	MasterKeyFile string
	Account       string
	Mode          string
	Output        string

	// Of create:
	Name      string
	Scopes    []string
	ExpiresAt string
	Signed    bool
	// Of rotate:
	Overlap time.Duration
	// Of revoke:
	Yes bool
}

// addFlags adds the flags that all of the commands have.
func (c *keysConfig) addFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&c.Account, "account", "", "on a store, `account` that the key belongs to, like acct_acme")
	fs.StringVar(&c.Mode, "mode", "", "on a store, `mode` that the key belongs to: test or live")
	c.storeConfig.addFlags(fs)
	fs.StringVar(&c.MasterKeyFile, "master-key-file", "", "on a store, `file` with the master keys, the current one first; create and rotate need it")
	fs.StringVarP(&c.Output, "output", "o", "table", "`format` of what is printed: table or json")
	nameVariables(fs)
	c.Service.AddFlags(fs)
}

func (c *keysConfig) validate() error {
	if !licensing.ValidAccountID(c.Account) {
		return badUsage("--account is %q: it must be acct_ and more of a-z 0-9 _, up to 64 characters in all", c.Account)
	}
	if c.owner().Mode != licensing.Test && c.owner().Mode != licensing.Live {
		return badUsage("--mode is %q: it must be test or live", c.Mode)
	}
	if c.Output != "table" && c.Output != "json" {
		return badUsage("--output is %q: it must be table or json", c.Output)
	}
	if c.Overlap < 0 || c.Overlap > service.MaxOverlap {
		return badUsage("--overlap is %v: it must be from 0s to %v", c.Overlap, service.MaxOverlap)
	}
	return c.storeConfig.validate()
}

func (c *keysConfig) owner() licensing.Owner {
	return licensing.Owner{AccountID: c.Account, Mode: licensing.Mode(c.Mode)}
}

// wanted is the key to make. What is wrong with it is a fault of the flags.
func (c *keysConfig) wanted() (service.NewKey, error) {
	key := licensing.APIKey{Owner: c.owner(), Name: c.Name, Scopes: c.Scopes}
	if c.ExpiresAt != "" {
		var err error
		if key.ExpiresAt, err = time.Parse(time.RFC3339, c.ExpiresAt); err != nil {
			return service.NewKey{}, badUsage("--expires-at is %q: it must be like 2027-01-31T00:00:00Z", c.ExpiresAt)
		}
		if key.ExpiresAt.IsZero() { // which would mean that it never expires
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

// ring reads the master keys; those of a data directory lie in it.
func (c *keysConfig) ring() (licensing.MasterRing, error) {
	path := c.MasterKeyFile
	if path == "" && c.DataDir != "" {
		path = filepath.Join(c.DataDir, masterFile)
	}
	if path == "" {
		return licensing.MasterRing{}, badUsage("--master-key-file must name the file with the master keys that the nodes have")
	}
	return readMasterRing(path)
}

func newKeysCommand(setup cli.Setup, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list, revoke and rotate API keys, through a service or on its store",
		Long: `Make, list, revoke and rotate API keys: of a service, through its API, or on the store
itself. So the first key is made, before anybody could ask a node for one. Nodes need no
restart.

The command line says which: --url, --api-key-file or --profile name a service,
--etcd-endpoints or --data-dir a store. Else the environment does, else the profile in use.

A key belongs to one account and one mode. An account needs no making: it exists from
its first key on.`,
		Example: `  licet keys create --account acct_acme --mode test --name shop --scopes orders,licenses \
    --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 --master-key-file master.keys
  licet keys list --account acct_acme --mode test --etcd-endpoints 10.0.0.1:2379
  licet keys revoke key_01… --account acct_acme --mode test --etcd-endpoints 10.0.0.1:2379
  licet keys create --name shop --scopes orders,licenses --url https://licenses.example.com --api-key-file admin.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeysCreate(setup, stdout, stderr), newKeysList(setup, stdout, stderr), newKeysGet(setup),
		newKeysRevoke(setup, stdout, stderr), newKeysRotate(setup, stdout, stderr))
	return cmd
}

func newKeysCreate(setup cli.Setup, stdout, stderr io.Writer) *cobra.Command {
	cfg := keysConfig{setup: setup}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an API key and show it, this once",
		Long: `Make an API key with its secret and print both. They are shown this once: the store
keeps a hash of the key, and the secret is derived from the master keys.`,
		Example: `  licet keys create --account acct_acme --mode live --name shop --scopes orders,licenses:read \
    --etcd-endpoints 10.0.0.1:2379 --master-key-file master.keys --output json
  licet keys create --account acct_acme --mode test --name all --scopes '*' --data-dir ./licet-data`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			call, err := cfg.place(cmd)
			switch {
			case err != nil:
				return err
			case call != nil:
				return call.Create(cfg.Name, cfg.Scopes, cfg.ExpiresAt, cfg.Signed)
			}
			wanted, err := cfg.wanted()
			if err != nil {
				return err
			}
			return cfg.onStore(cmd.Context(), stderr, true, func(ctx context.Context, maker service.Keymaker) error {
				issued, err := maker.Create(ctx, wanted)
				if licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown {
					return fmt.Errorf("the API key %s may have been made or not; nobody knows it, so revoke it if it is listed: %w", issued.Key.ID, err)
				}
				if err != nil {
					return err
				}
				if err := cfg.show(stdout, createdRows(issued)); err != nil {
					return fmt.Errorf("the API key %s was made and could not be shown, so revoke it: %w", issued.Key.ID, err)
				}
				fmt.Fprintln(stderr, "the key and its secret are not shown again")
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&cfg.Name, "name", "", "`name` to know the key by, for people")
	cmd.Flags().StringSliceVar(&cfg.Scopes, "scopes", nil, "`scopes`, what it may be used for, with commas between: "+strings.Join(licensing.Scopes(), ", ")+", each also with :read behind it, or * for all")
	cmd.Flags().StringVar(&cfg.ExpiresAt, "expires-at", "", "`time` from which on it is no longer good, like 2027-01-31T00:00:00Z; empty: never")
	cmd.Flags().BoolVar(&cfg.Signed, "require-signature", false, "refuse requests with the key that are not signed with its secret")
	cfg.addFlags(cmd.Flags())
	completeKeys(cmd)
	return cmd
}

func newKeysList(setup cli.Setup, stdout, stderr io.Writer) *cobra.Command {
	cfg := keysConfig{setup: setup}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the API keys of an account and mode, the newest first",
		Example: `  licet keys list --account acct_acme --mode test --etcd-endpoints 10.0.0.1:2379
  licet keys list --account acct_acme --mode live --etcd-endpoints 10.0.0.1:2379 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			call, err := cfg.place(cmd)
			switch {
			case err != nil:
				return err
			case call != nil:
				return call.List()
			}
			for _, name := range []string{"limit", "cursor"} {
				if cmd.Flags().Changed(name) {
					return badUsage("--%s is for a service; of a store all API keys are listed", name)
				}
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
						return cfg.showList(stdout, keys, time.Now())
					}
				}
			})
		},
	}
	cfg.addFlags(cmd.Flags())
	cli.KeyCall{}.ListFlags(cmd)
	completeKeys(cmd)
	return cmd
}

func newKeysRevoke(setup cli.Setup, stdout, stderr io.Writer) *cobra.Command {
	cfg := keysConfig{setup: setup}
	cmd := &cobra.Command{
		Use:   "revoke KEY_ID",
		Short: "End an API key for good",
		Long: `End an API key for good: within 2 seconds no node takes it any more. On a terminal it
asks before. Revoking a key again changes nothing.`,
		Example: `  licet keys revoke key_01jd4q8x2m7r3n5t9v1w4y6z8a --account acct_acme --mode test \
    --etcd-endpoints 10.0.0.1:2379`,
		Args: oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			call, err := cfg.place(cmd)
			switch {
			case err != nil:
				return err
			case call != nil:
				return call.Revoke(args[0])
			}
			return cfg.onStore(cmd.Context(), stderr, false, func(ctx context.Context, maker service.Keymaker) error {
				if !cfg.Yes && terminal.Is(cmd.InOrStdin()) {
					if err := cfg.confirm(cmd, maker.Store, args[0], stderr); err != nil {
						return err
					}
					var cancel context.CancelFunc // for the time that people take
					ctx, cancel = context.WithTimeout(cmd.Context(), keysTimeout)
					defer cancel()
				}
				key, err := maker.Revoke(ctx, cfg.owner(), args[0])
				if err != nil {
					return cfg.about(args[0], err)
				}
				return cfg.show(stdout, revokedRows(key))
			})
		},
	}
	cmd.Flags().BoolVar(&cfg.Yes, "yes", false, "do not ask")
	cfg.addFlags(cmd.Flags())
	completeKeys(cmd)
	return cmd
}

func newKeysRotate(setup cli.Setup, stdout, stderr io.Writer) *cobra.Command {
	cfg := keysConfig{setup: setup}
	cmd := &cobra.Command{
		Use:   "rotate KEY_ID",
		Short: "Give an API key a new secret and show it, this once",
		Long: `Give an API key a new secret, derived from the first master key of the ring, and
print it, this once. The secret before stays good for the overlap, one before that
does not. The key itself stays as it is.`,
		Example: `  licet keys rotate key_01jd4q8x2m7r3n5t9v1w4y6z8a --account acct_acme --mode test \
    --etcd-endpoints 10.0.0.1:2379 --master-key-file master.keys --overlap 48h`,
		Args: oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			call, err := cfg.place(cmd)
			switch {
			case err != nil:
				return err
			case call != nil:
				return call.Rotate(args[0], cfg.Overlap)
			}
			return cfg.onStore(cmd.Context(), stderr, true, func(ctx context.Context, maker service.Keymaker) error {
				issued, err := maker.Rotate(ctx, cfg.owner(), args[0], cfg.Overlap)
				if err != nil {
					return cfg.about(args[0], err)
				}
				if err := cfg.show(stdout, rotatedRows(issued)); err != nil {
					return fmt.Errorf("the new secret could not be shown, so rotate it again: %w", err)
				}
				fmt.Fprintln(stderr, "the secret is not shown again")
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&cfg.Overlap, "overlap", service.DefaultOverlap, "how long the secret before stays good, 0s to 720h")
	cfg.addFlags(cmd.Flags())
	completeKeys(cmd)
	return cmd
}

func oneKeyID(_ *cobra.Command, args []string) error {
	if len(args) != 1 || !strings.HasPrefix(args[0], "key_") {
		return errors.New("name one key by its id, like key_01jd4q8x2m7r3n5t9v1w4y6z8a; licet keys list has them")
	}
	return nil
}

// onStore does work on the store, with the ring if it is needed.
func (c *keysConfig) onStore(ctx context.Context, stderr io.Writer, needsRing bool, work func(context.Context, service.Keymaker) error) (err error) {
	maker := service.Keymaker{Clock: time.Now, Entropy: rand.Reader}
	if needsRing {
		if maker.Ring, err = c.ring(); err != nil {
			return err
		}
	}
	return c.withStore(ctx, stderr, func(ctx context.Context, store *kv.Store) error {
		maker.Store = store
		return work(ctx, maker)
	})
}

// about says which key an error is about.
func (c *keysConfig) about(id string, err error) error {
	return fmt.Errorf("%s of %s in %s mode: %w", id, c.Account, c.Mode, err)
}

// confirm asks whether a key is to be revoked.
func (c *keysConfig) confirm(cmd *cobra.Command, store store.Keys, id string, stderr io.Writer) error {
	key, err := store.FindAPIKey(cmd.Context(), c.owner(), id)
	if err == nil && key == nil {
		err = licensing.ErrAPIKeyNotFound
	}
	if err != nil {
		return c.about(id, err)
	}
	question := fmt.Sprintf("Revoke %s (%s) of %s in %s mode, for good?", id, key.Name, c.Account, c.Mode)
	if terminal.Confirm(cmd.Context(), cmd.InOrStdin(), stderr, question) != nil {
		return errors.New("not revoked")
	}
	return nil
}
