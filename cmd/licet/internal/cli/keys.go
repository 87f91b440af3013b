package cli

import (
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
)

// KeyCall is a run of one of the commands of licet keys. They work on a store as
// well, so they are made elsewhere and come here where a service is meant.
type KeyCall struct {
	Setup   Setup
	Cmd     *cobra.Command
	Service *Service
	Output  string
}

func (k KeyCall) do(route, scope string, run func(*session) error) error {
	is := spec{route: route, scope: scope, run: func(c *session, _ []string) error { return run(c) }}
	return k.Setup.run(k.Cmd, k.Service, k.Output, is, nil)
}

// Create makes an API key and shows it.
func (k KeyCall) Create(name string, scopes []string, expiresAt string, signed bool) error {
	end, err := moment("expires-at", expiresAt)
	if err != nil {
		return err
	}
	wanted := client.NewKey{Name: name, Scopes: scopes, ExpiresAt: end, RequireSignature: signed}
	return k.do("POST /v1/keys", "keys", func(c *session) error {
		var made *client.IssuedKey
		data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
			made, err = api.CreateKey(c.ctx, wanted, as...)
			return err
		})
		if err != nil {
			return err
		}
		if err := c.printOnce(data); err != nil {
			return fmt.Errorf("the API key %s was made and could not be shown, so revoke it: %w", made.ID, err)
		}
		fmt.Fprintln(c.stderr, "the key and its secret are not shown again")
		return nil
	})
}

// printOnce prints what is shown this once. Where nobody reads it, it fails: the
// signal would end the process before it has said so.
func (c *session) printOnce(data json.RawMessage) error {
	signal.Ignore(syscall.SIGPIPE)
	return c.print(data)
}

// ListFlags adds the flags that licet keys list has for a service.
func (KeyCall) ListFlags(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) }

// List lists API keys.
func (k KeyCall) List() error {
	return k.do("GET /v1/keys", "keys:read", func(c *session) error {
		return c.list(listing{
			member:  "keys",
			columns: []string{"id", "name", "status", "scopes", "require_signature", "created_at", "expires_at", "revoked_at", "last_used_at"},
			read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
				return next(api.ListKeys(c.ctx, page, as...))
			},
		}, pageMost)
	})
}

// Get looks an API key up.
func (k KeyCall) Get(id string) error {
	return k.do("GET /v1/keys/{key_id}", "keys:read", func(c *session) error {
		return c.show(func(api *client.Client, as ...client.CallOption) error {
			return only(api.Key(c.ctx, id, as...))
		})
	})
}

// Revoke ends an API key. On a terminal it asks before.
func (k KeyCall) Revoke(id string) error {
	return k.do("DELETE /v1/keys/{key_id}", "keys", func(c *session) error {
		if err := c.confirm("Revoke %s at %s, for good?", id, c.target.url); err != nil {
			return err
		}
		return c.show(func(api *client.Client, as ...client.CallOption) error {
			return only(api.RevokeKey(c.ctx, id, as...))
		})
	})
}

// Rotate gives an API key a new secret and shows it.
func (k KeyCall) Rotate(id string, overlap time.Duration) error {
	return k.do("POST /v1/keys/{key_id}/rotate", "keys", func(c *session) error {
		data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
			return only(api.RotateKey(c.ctx, id, client.Rotation{Overlap: &overlap}, as...))
		})
		if err != nil {
			return err
		}
		if err := c.printOnce(data); err != nil {
			return fmt.Errorf("the new secret could not be shown, so rotate it again: %w", err)
		}
		fmt.Fprintln(c.stderr, "the secret is not shown again")
		return nil
	})
}
