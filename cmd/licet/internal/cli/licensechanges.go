package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
)

func (s licenseGroup) licensesSuspend() *cobra.Command {
	return s.licenseChange(spec{
		use: "suspend LICENSE_KEY...", short: "Suspend licenses",
		example: `  licet licenses suspend LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --reason chargeback`,
		route:   "POST /v1/licenses/{license_key}/suspend",
	}, false, (*client.LicenseService).Suspend)
}

func (s licenseGroup) licensesReinstate() *cobra.Command {
	return s.licenseChange(spec{
		use: "reinstate LICENSE_KEY...", short: "End the suspension of licenses",
		example: `  licet licenses reinstate LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1`,
		route:   "POST /v1/licenses/{license_key}/reinstate",
	}, false, (*client.LicenseService).Reinstate)
}

func (s licenseGroup) licensesRevoke() *cobra.Command {
	return s.licenseChange(spec{
		use: "revoke LICENSE_KEY...", short: "Revoke licenses for good",
		long:    "Revoke licenses for good. The command asks for confirmation on a terminal, once for all licenses.",
		example: `  licet licenses revoke LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --reason "violation of the terms"`,
		route:   "POST /v1/licenses/{license_key}/revoke",
	}, true, (*client.LicenseService).Revoke)
}

// licenseChange returns a command that changes licenses one after the other. After a failure it reports the failure and
// continues with the next license.
func (s licenseGroup) licenseChange(
	is spec, ask bool, change func(*client.LicenseService, context.Context, string, string,
		...client.CallOption) (*client.License, error),
) *cobra.Command {
	var reason string
	is.scope = "licenses"
	is.flags = func(cmd *cobra.Command) {
		cmd.Flags().StringVar(&reason, "reason", "", "`reason` of the change")
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
				return only(change(api.Licenses, c.ctx, key, reason, as...))
			}
		}
		if len(keys) == 1 {
			return c.show(one(keys[0]))
		}
		return c.each(keys, one)
	}
	return s.command(is)
}

// each changes one license after the other, and prints a line for each.
func (c *session) each(keys []string, one func(string) question) error {
	out := c.newListWriter(listing{columns: []string{"license_key", "status", "state_reason", "id"}})
	defer out.end()
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
			return err // every other call would fail too
		}
		failed++
		fmt.Fprintf(c.stderr, "licet: %s: %v\n", key, c.explain(err))
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d licenses failed", errFailed, failed, len(keys))
	}
	return nil
}

func (s licenseGroup) licensesRenew() *cobra.Command {
	var renewal client.Renewal
	var end string
	return s.command(spec{
		use: "renew LICENSE_KEY", short: "Change when a license expires",
		long: `Change when a license expires: at a given time, or later by a duration. The duration counts from
the current expiry, or from now if the license has expired.`,
		example: `  licet licenses renew LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --expires-at 2031-01-01T00:00:00Z
  licet licenses renew LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --extend P1Y --idempotency-key invoice-2207`,
		route: "POST /v1/licenses/{license_key}/renew", scope: "licenses",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&end, "expires-at", "",
				"`time` when the license expires, such as 2031-01-31T00:00:00Z")
			cmd.Flags().StringVar(&renewal.Extend, "extend", "", "`duration` to add, such as P1M, P1Y or P30D")
			onceFlag(cmd.Flags())
			cmd.MarkFlagsMutuallyExclusive("expires-at", "extend")
			cmd.MarkFlagsOneRequired("expires-at", "extend")
		},
		run: func(c *session, args []string) (err error) {
			if renewal.ExpiresAt, err = moment("expires-at", end); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Licenses.Renew(c.ctx, args[0], renewal, as...))
			})
		},
	})
}

func (s licenseGroup) licensesReissue() *cobra.Command {
	var in client.Reissue
	return s.command(spec{
		use: "reissue LICENSE_KEY", short: "Give a license a new key",
		long: `Give a license a new key, for example because its key was published. The license
keeps its id and its devices. Earlier keys are invalid at once; with --overlap, bound devices can
use them until the overlap ends.`,
		example: `  licet licenses reissue lic_77vwt5zc5zqn856r8rb6xh0hgc --reason leaked
  licet licenses reissue lic_77vwt5zc5zqn856r8rb6xh0hgc --overlap P7D`,
		route: "POST /v1/licenses/{license_key}/reissue", scope: "licenses",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&in.Overlap, "overlap", "",
				"`duration` for which bound devices may still use the earlier keys, up to P30D (default: PT0S)")
			cmd.Flags().StringVar(&in.Reason, "reason", "", "`reason` of the change")
			onceFlag(cmd.Flags())
		},
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Licenses.Reissue(c.ctx, args[0], in, as...))
			})
		},
	})
}

func (s licenseGroup) licensesUpdate() *cobra.Command {
	var devices int
	var extra, own, email, reference string
	return s.command(spec{
		use: "update LICENSE_KEY", short: "Change the device limit, metadata, entitlements and customer of a license",
		long: `Change the device limit, the metadata, the entitlements and the customer of a license. The
command merges metadata: each member replaces the member with the same name, and null removes a
member. Entitlements are added to those of the product, or replace them; null removes an entitlement.
An empty --buyer-email or --customer-reference removes it. A license with an order takes no
--buyer-email.`,
		example: `  licet licenses update LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --max-devices 5
  licet licenses update LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --metadata '{"seat":"3B","trial":null}'
  licet licenses update LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --entitlements '{"export":true,"projects":10}'
  licet licenses update LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --customer-reference C-1042`,
		route: "PATCH /v1/licenses/{license_key}", scope: "licenses",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().IntVar(&devices, "max-devices", 0, "maximum `number` of devices; 0: unlimited")
			cmd.Flags().StringVar(&extra, "metadata", "", "JSON `object` to merge, or @ and a file name")
			cmd.Flags().StringVar(&own, "entitlements", "",
				"JSON `object` of entitlements to change, or @ and a file name")
			cmd.Flags().StringVar(&email, "buyer-email", "", "e-mail `address` of the buyer; empty: none")
			cmd.Flags().StringVar(&reference, "customer-reference", "",
				"your own `name` for the customer, up to 64 characters; empty: none")
			cmd.MarkFlagsOneRequired("max-devices", "metadata", "entitlements", "buyer-email", "customer-reference")
		},
		run: func(c *session, args []string) (err error) {
			update := client.LicenseUpdate{
				MaxDevices:        changed(c, "max-devices", devices),
				BuyerEmail:        changed(c, "buyer-email", email),
				CustomerReference: changed(c, "customer-reference", reference),
			}
			if update.Metadata, err = metadata(extra); err != nil {
				return err
			}
			if update.Entitlements, err = entitlements(own); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Licenses.Update(c.ctx, args[0], update, as...))
			})
		},
	})
}
