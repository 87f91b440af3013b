package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
)

func (s Setup) licensesSuspend() *cobra.Command {
	return s.licenseChange(spec{
		use: "suspend LICENSE_KEY...", short: "Freeze licenses",
		example: `  licet licenses suspend LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --reason chargeback`,
		route:   "POST /v1/licenses/{license_key}/suspend",
	}, false, (*client.Client).SuspendLicense)
}

func (s Setup) licensesReinstate() *cobra.Command {
	return s.licenseChange(spec{
		use: "reinstate LICENSE_KEY...", short: "End the suspension of licenses",
		example: `  licet licenses reinstate LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1`,
		route:   "POST /v1/licenses/{license_key}/reinstate",
	}, false, (*client.Client).ReinstateLicense)
}

func (s Setup) licensesRevoke() *cobra.Command {
	return s.licenseChange(spec{
		use: "revoke LICENSE_KEY...", short: "Disable licenses for good",
		long:    "Disable licenses for good. On a terminal it asks before, once for all of them.",
		example: `  licet licenses revoke LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --reason "violation of the terms"`,
		route:   "POST /v1/licenses/{license_key}/revoke",
	}, true, (*client.Client).RevokeLicense)
}

// licenseChange makes a command that changes some licenses, one after the other.
// What fails for one is told, and the others are changed all the same.
func (s Setup) licenseChange(is spec, ask bool, change func(*client.Client, context.Context, string, string, ...client.CallOption) (*client.License, error)) *cobra.Command {
	var reason string
	is.args, is.scope = cobra.MinimumNArgs(1), "licenses"
	is.flags = func(cmd *cobra.Command) {
		cmd.Flags().StringVar(&reason, "reason", "", "`text` that says why")
		if ask {
			yesFlag(cmd)
		}
	}
	is.run = func(c *session, keys []string) error {
		if ask {
			what := "the license " + keys[0]
			if len(keys) > 1 {
				what = fmt.Sprintf("%d licenses", len(keys))
			}
			if err := c.confirm("Revoke %s at %s, for good?", what, c.target.url); err != nil {
				return err
			}
		}
		one := func(key string) question {
			return func(api *client.Client, as ...client.CallOption) error {
				return only(change(api, c.ctx, key, reason, as...))
			}
		}
		if len(keys) == 1 {
			return c.show(one(keys[0]))
		}
		return c.each(keys, one)
	}
	return s.command(is)
}

// each asks for one thing after the other, and prints a line for each.
func (c *session) each(keys []string, one func(string) question) error {
	out := c.newListWriter(listing{columns: []string{"license_key", "status", "state_reason"}})
	failed := 0
	for _, key := range keys {
		data, err := c.ask(one(key))
		if err == nil {
			if err := out.items([]json.RawMessage{data}); err != nil {
				return err
			}
			continue
		}
		if c.ctx.Err() != nil || unreachable(err) {
			return err // so would be all others
		}
		failed++
		fmt.Fprintf(c.stderr, "licet: %s: %v\n", key, c.explain(err))
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d licenses failed", errFailed, failed, len(keys))
	}
	return nil
}

func (s Setup) licensesRenew() *cobra.Command {
	var renewal client.Renewal
	var end string
	return s.command(spec{
		use: "renew LICENSE_KEY", short: "Move a license's end",
		long: `Move a license's end: to a time, or by a while that counts from the present end, or
from now where that is past.`,
		example: `  licet licenses renew LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --expires-at 2031-01-01T00:00:00Z
  licet licenses renew LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --extend P1Y --idempotency-key invoice-2207`,
		args: cobra.ExactArgs(1), route: "POST /v1/licenses/{license_key}/renew", scope: "licenses",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&end, "expires-at", "", "`time` of its end, like 2031-01-31T00:00:00Z")
			cmd.Flags().StringVar(&renewal.Extend, "extend", "", "by how `long` it is extended, like P1M, P1Y or P30D")
			onceFlag(cmd.Flags())
			cmd.MarkFlagsMutuallyExclusive("expires-at", "extend")
			cmd.MarkFlagsOneRequired("expires-at", "extend")
		},
		run: func(c *session, args []string) (err error) {
			if renewal.ExpiresAt, err = moment("expires-at", end); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.RenewLicense(c.ctx, args[0], renewal, as...))
			})
		},
	})
}

func (s Setup) licensesUpdate() *cobra.Command {
	var devices int
	var extra string
	return s.command(spec{
		use: "update LICENSE_KEY", short: "Change a license's limit and metadata",
		long: `Change a license's limit and metadata. Metadata is merged: each member replaces the
one of its name, and one that is null removes it.`,
		example: `  licet licenses update LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --max-devices 5
  licet licenses update LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --metadata '{"seat":"3B","trial":null}'`,
		args: cobra.ExactArgs(1), route: "PATCH /v1/licenses/{license_key}", scope: "licenses",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().IntVar(&devices, "max-devices", 0, "how `many` devices it is for; 0: any number")
			cmd.Flags().StringVar(&extra, "metadata", "", "`object` of JSON to merge, or @ and a file")
			cmd.MarkFlagsOneRequired("max-devices", "metadata")
		},
		run: func(c *session, args []string) (err error) {
			update := client.LicenseUpdate{MaxDevices: changed(c, "max-devices", devices)}
			if update.Metadata, err = metadata(extra); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.UpdateLicense(c.ctx, args[0], update, as...))
			})
		},
	})
}
