package cli

import (
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/licensing"
)

// keyGroup builds the commands of licet keys.
type keyGroup struct{ Setup }

const exampleKey = "key_vq01jd4q8x2m7r3n5t9v1w4y6z8a"

func (s keyGroup) keyCommands() *cobra.Command {
	cmd := group("keys", "Create, list, revoke and rotate API keys",
		`  licet keys create --name shop --scopes orders,licenses
  licet keys list
  licet keys rotate `+exampleKey+` --overlap 48h
  licet keys revoke `+exampleKey,
		s.keysCreate(), s.keysList(), s.keysGet(), s.keysRevoke(), s.keysRotate())
	cmd.Long = `Create, list, revoke and rotate API keys through a service. The API key of the call decides
the account and the mode.

The first API key of an account is created on the store: see licet store keys create --help.`
	return cmd
}

// ScopeFlag adds the flag for the scopes of an API key.
func ScopeFlag(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringSliceVar(into, "scopes", nil, "`scopes` that the API key grants, separated by commas: "+
		licensing.ScopesInWords()+" for all")
	Complete(cmd, "scopes", append([]string{"*"}, licensing.ScopeForms()...)...)
}

func (s keyGroup) keysCreate() *cobra.Command {
	var key client.NewKey
	var end string
	return s.command(spec{
		use: "create", short: "Create an API key and print it once",
		long: `Create an API key with its secret and print both. Licet can't print them again: the store keeps
only a hash of the API key, and derives the secret from a master key.`,
		example: `  licet keys create --name shop --scopes orders,licenses:read
  licet keys create --name audit --scopes events:read --expires-at 2031-01-31T00:00:00Z --output json`,
		route: "POST /v1/keys", scope: "keys",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&key.Name, "name", "", "`name` of the API key, for people")
			ScopeFlag(cmd, &key.Scopes)
			fs.StringVar(&end, "expires-at", "",
				"`time` when the API key expires, such as 2031-01-31T00:00:00Z (default: never)")
			fs.BoolVar(&key.RequireSignature, "require-signature", false,
				"refuse requests with this API key that are not signed with its secret")
		},
		run: func(c *session, _ []string) (err error) {
			if key.ExpiresAt, err = moment("expires-at", end); err != nil {
				return err
			}
			var made *client.IssuedKey
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
				made, err = api.APIKeys.Create(c.ctx, key, as...)
				return err
			})
			if err != nil {
				return err
			}
			if err := c.printOnce(data); err != nil {
				return fmt.Errorf("created the API key %s but could not print it; revoke the key: %w", made.ID, err)
			}
			fmt.Fprintln(c.stderr, "Keep the API key and its secret: licet can't print them again.")
			return nil
		},
	})
}

// printOnce prints a secret that the service does not return again. If the reader of the output is gone, printOnce
// returns an error: SIGPIPE would otherwise end the process before it reports which secret is lost.
func (c *session) printOnce(data json.RawMessage) error {
	signal.Ignore(syscall.SIGPIPE)
	return c.print(data)
}

// keyColumns are the columns of a table of API keys.
var keyColumns = []string{
	"id", "name", "status", "scopes", "require_signature", "created_at", "expires_at", "revoked_at", "last_used_at",
}

// PrintKeys prints API keys, in the form of the API, as the table of licet keys list.
func (s Setup) PrintKeys(cmd *cobra.Command, keys []json.RawMessage) error {
	c := &session{cmd: cmd, look: s.look(cmd), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
	out := c.newListWriter(listing{member: "keys", columns: keyColumns,
		create: "licet store keys create --help says how to create one"})
	if err := out.items(keys); err != nil {
		return err
	}
	out.end()
	return nil
}

func (s keyGroup) keysList() *cobra.Command {
	return s.command(spec{
		use: "list", short: "List API keys, newest first",
		example: `  licet keys list
  licet keys list --all --output json`,
		route: "GET /v1/keys", scope: "keys:read",
		flags: func(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) },
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member: "keys", columns: keyColumns,
				create: "licet keys create --name shop --scopes orders,licenses creates one",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.APIKeys.List(c.ctx, page, as...))
				},
			}, pageMost)
		},
	})
}

func (s keyGroup) keysGet() *cobra.Command {
	return s.command(spec{
		use: "get KEY_ID", short: "Show an API key, without its secret",
		example: `  licet keys get ` + exampleKey,
		route:   "GET /v1/keys/{key_id}", scope: "keys:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.APIKeys.Get(c.ctx, args[0], as...))
			})
		},
	})
}

func (s keyGroup) keysRevoke() *cobra.Command {
	return s.command(spec{
		use: "revoke KEY_ID", short: "Revoke an API key for good",
		long: `Revoke an API key for good: within 2 seconds every node refuses it. The command asks for
confirmation on a terminal. Revoking a revoked API key changes nothing.`,
		example: `  licet keys revoke ` + exampleKey,
		route:   "DELETE /v1/keys/{key_id}", scope: "keys",
		flags: yesFlag,
		run: func(c *session, args []string) error {
			if err := c.confirm("Revoke %s at %s, for good?", args[0], c.target.url); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.APIKeys.Revoke(c.ctx, args[0], as...))
			})
		},
	})
}

func (s keyGroup) keysRotate() *cobra.Command {
	var overlap time.Duration
	return s.command(spec{
		use: "rotate KEY_ID", short: "Replace the secret of an API key and print the new one once",
		long: `Replace the secret of an API key and print the new secret. The previous secret stays valid for the
overlap; at most two secrets are valid. The API key itself does not change.`,
		example: `  licet keys rotate ` + exampleKey + ` --overlap 48h`,
		route:   "POST /v1/keys/{key_id}/rotate", scope: "keys",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour,
				"how long the previous secret stays valid, 0s to 720h")
		},
		run: func(c *session, args []string) error {
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
				return only(api.APIKeys.Rotate(c.ctx, args[0], client.Rotation{Overlap: &overlap}, as...))
			})
			if err != nil {
				return err
			}
			if err := c.printOnce(data); err != nil {
				return fmt.Errorf("created a new secret but could not print it; rotate the API key again: %w", err)
			}
			fmt.Fprintln(c.stderr, "Keep the secret: licet can't print it again.")
			return nil
		},
	})
}
