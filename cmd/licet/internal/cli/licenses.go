package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/licensing"
)

// licenseGroup builds the commands of licet licenses.
type licenseGroup struct{ Setup }

func (s licenseGroup) licenseCommands() *cobra.Command {
	return group("licenses", "List, grant, change and activate licenses",
		`  licet licenses grant --product-id editor --quantity 10
  licet licenses list --status activated
  licet licenses suspend LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --reason chargeback
  licet licenses activate LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 laptop-1`,
		s.licensesList(), s.licensesGet(), s.licensesGrant(),
		s.licensesSuspend(), s.licensesReinstate(), s.licensesRevoke(), s.licensesRenew(), s.licensesReissue(),
		s.licensesUpdate(),
		s.licensesDevices(), s.licensesRemoveDevice(), s.licensesEvents(),
		s.licensesExport(), s.licensesImport(),
		s.licensesActivate(), s.licensesValidate(), s.licensesDeactivate())
}

func (s licenseGroup) licensesList() *cobra.Command {
	var filter client.LicenseFilter
	return s.command(spec{
		use: "list", short: "List licenses, newest first",
		example: `  licet licenses list --status activated --limit 50
  licet licenses list --buyer-email anna@example.com
  licet licenses list --product-id editor --all --output json > licenses.jsonl`,
		route: "GET /v1/licenses", scope: "licenses:read",
		flags: func(cmd *cobra.Command) {
			licenseFilterFlags(cmd, &filter)
			listFlags(cmd, pageStandard, pageMost)
		},
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member: "licenses",
				columns: []string{"license_key", "status", "product_id", "current_devices", "max_devices", "expires_at",
					"created_at", "order_no", "id"},
				create: "licet licenses grant --product-id editor issues one, and so does a paid order",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.Licenses.List(c.ctx, filter, page, as...))
				},
			}, pageMost)
		},
	})
}

// licenseFilterFlags adds the flags that select licenses.
func licenseFilterFlags(cmd *cobra.Command, filter *client.LicenseFilter) {
	fs := cmd.Flags()
	fs.StringVar(&filter.Status, "status", "",
		"only licenses in this `state`: not_activated, activated, expired, revoked or suspended")
	fs.StringVar(&filter.ProductID, "product-id", "", "only licenses of this `product`")
	fs.StringVar(&filter.OrderNo, "order-no", "", "only the license of this `order`")
	fs.StringVar(&filter.BuyerEmail, "buyer-email", "", "only licenses of the buyer with this `address`")
	fs.StringVar(&filter.CustomerReference, "customer-reference", "",
		"only licenses with this `reference` of a customer")
	fs.StringVar(&filter.ExternalKey, "external-key", "", "only the license with this `key` of another service")
	Complete(cmd, "status", words(licensing.Statuses())...)
}

func (s licenseGroup) licensesGet() *cobra.Command {
	return s.command(spec{
		use: "get LICENSE_KEY", short: "Show a license with its devices",
		example: `  licet licenses get LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1`,
		route:   "GET /v1/licenses/{license_key}", scope: "licenses:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Licenses.Get(c.ctx, args[0], as...))
			})
		},
	})
}

func (s licenseGroup) licensesGrant() *cobra.Command {
	var grant client.Grant
	var devices int
	var end, extra, own string
	return s.command(spec{
		use: "grant", short: "Issue licenses without an order",
		example: `  licet licenses grant --product-id editor
  licet licenses grant --product-id editor --buyer-email anna@example.com --customer-reference C-1042
  licet licenses grant --product-id editor --external-key 7F3A-99B1-04CC
  licet licenses grant --product-id editor --quantity 100 --expires-at 2031-01-01T00:00:00Z --idempotency-key spring-campaign`,
		route: "POST /v1/licenses", scope: "licenses",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&grant.ProductID, "product-id", "", "`product` of the licenses")
			fs.IntVar(&grant.Quantity, "quantity", 1, "`number` of licenses, 1 to 1000")
			fs.IntVar(&devices, "max-devices", 0,
				"maximum `number` of devices of each license; 0: unlimited (default: the product's maximum)")
			fs.StringVar(&end, "expires-at", "",
				"`time` when the licenses expire, such as 2031-01-31T00:00:00Z (default: from the validity of the "+
					"product)")
			fs.StringVar(&extra, "metadata", "", "JSON `object` to store with each license, or @ and a file name")
			fs.StringVar(&own, "entitlements", "",
				"JSON `object` of entitlements besides those of the product, or @ and a file name")
			fs.StringVar(&grant.ExternalKey, "external-key", "",
				"`key` from the service that sold the license; this key activates the license too")
			fs.StringVar(&grant.BuyerEmail, "buyer-email", "", "e-mail `address` of the buyer of the licenses")
			fs.StringVar(&grant.CustomerReference, "customer-reference", "",
				"your own `name` for the customer, such as a number, up to 64 characters")
			onceFlag(fs)
			_ = cmd.MarkFlagRequired("product-id")
		},
		run: func(c *session, _ []string) (err error) {
			grant.MaxDevices = changed(c, "max-devices", devices)
			if grant.ExpiresAt, err = moment("expires-at", end); err != nil {
				return err
			}
			if grant.Metadata, err = metadata(extra); err != nil {
				return err
			}
			if grant.Entitlements, err = entitlements(own); err != nil {
				return err
			}
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Licenses.Grant(c.ctx, grant, as...))
			})
			if err != nil {
				return err
			}
			if c.json {
				return c.print(data)
			}
			items, err := listItems(data, "licenses")
			if err != nil {
				return err
			}
			out := c.newListWriter(listing{columns: []string{"license_key", "status", "product_id", "max_devices",
				"expires_at", "id"}})
			defer out.end()
			return out.items(items)
		},
	})
}

func (s licenseGroup) licensesDevices() *cobra.Command {
	return s.command(spec{
		use: "devices LICENSE_KEY", short: "List the devices of a license",
		example: `  licet licenses devices LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1
  licet licenses devices LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 --all --output json`,
		route: "GET /v1/licenses/{license_key}/devices", scope: "licenses:read",
		flags: func(cmd *cobra.Command) { listFlags(cmd, devicesStandard, deviceMax) },
		run: func(c *session, args []string) error {
			return c.list(listing{
				member:  "devices",
				columns: []string{"device_id", "device_name", "bound_at", "last_seen_at", "lease_expires_at"},
				create:  "licet licenses activate LICENSE_KEY laptop-1 binds a device",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.Licenses.ListDevices(c.ctx, args[0], page, as...))
				},
			}, deviceMax)
		},
	})
}

func (s licenseGroup) licensesRemoveDevice() *cobra.Command {
	return s.command(spec{
		use: "remove-device LICENSE_KEY DEVICE_ID", short: "Remove a device from a license, which frees its slot",
		example: `  licet licenses remove-device LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 laptop-1`,
		route:   "DELETE /v1/licenses/{license_key}/devices/{device_id}", scope: "licenses",
		run: func(c *session, args []string) error {
			var removal *client.Removal
			err := c.show(func(api *client.Client, as ...client.CallOption) (err error) {
				removal, err = api.Licenses.RemoveDevice(c.ctx, args[0], args[1], as...)
				return err
			})
			if err == nil && !removal.Removed {
				fmt.Fprintf(c.stderr, "licet: the license has no device %s; licet licenses devices lists its devices\n",
					plain(removal.DeviceID))
			}
			return err
		},
	})
}
