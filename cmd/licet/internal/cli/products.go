package cli

import (
	"github.com/spf13/cobra"

	"licet/client"
)

// productGroup builds the commands of licet products.
type productGroup struct{ Setup }

const (
	pageStandard, pageMost     = 20, 100
	devicesStandard, deviceMax = 100, 1000
)

func (s productGroup) productCommands() *cobra.Command {
	return group("products", "List, define and remove products, and roll out their terms",
		`  licet products put editor --name Editor --max-devices 5 --validity P1Y
  licet products list
  licet products get editor --output json`,
		s.productsList(), s.productsGet(), s.productsPut(), s.productsDelete(), s.productsRollout(),
		s.productsRolloutStatus(), s.productsCancelRollout())
}

func (s productGroup) productsList() *cobra.Command {
	return s.command(spec{
		use: "list", short: "List products, newest first",
		example: `  licet products list
  licet products list --all --output json`,
		route: "GET /v1/products", scope: "products:read",
		flags: func(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) },
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member: "products",
				columns: []string{"product_id", "name", "key_prefix", "max_devices", "validity", "validity_from",
					"created_at"},
				create: "licet products put editor --name Editor creates a product",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.Products.List(c.ctx, page, as...))
				},
			}, pageMost)
		},
	})
}

// next returns the cursor of the next page.
func next[T any](list *client.List[T], err error) (string, error) {
	if err != nil {
		return "", err
	}
	return list.NextCursor, nil
}

func (s productGroup) productsGet() *cobra.Command {
	return s.command(spec{
		use: "get PRODUCT_ID", short: "Show a product",
		example: `  licet products get editor`,
		route:   "GET /v1/products/{product_id}", scope: "products:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Products.Get(c.ctx, args[0], as...))
			})
		},
	})
}

func (s productGroup) productsPut() *cobra.Command {
	var terms client.ProductTerms
	var devices int
	var extra, entitled string
	var trial trialFlags
	var match client.DeviceMatch
	var billing client.Billing
	return s.command(spec{
		use: "put PRODUCT_ID", short: "Create a product or replace its terms",
		long: `Create a product or replace its terms. A flag that you leave out sets its default, not the
previous value. Existing licenses keep their terms; "licet products rollout" applies the new
terms to them.`,
		example: `  licet products put editor --name Editor --key-prefix EDIT --max-devices 5 --validity P1Y --grace P7D
  licet products put game --self-service-deactivation --removals-per-month 3 --metadata '{"shelf":7}'
  licet products put studio --entitlements '{"export":true,"projects":10}'
  licet products put render --max-devices 50 --device-mode leased --lease-seconds 600
  licet products put editor --validity P1Y --trial-validity P14D
  licet products put desk --inactive-after P90D --match-at-least 3
  licet products put cloud --billing P1M --billing-grace P5D`,
		route: "PUT /v1/products/{product_id}", scope: "products",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&terms.Name, "name", "", "`name` of the product, for people")
			fs.StringVar(&terms.KeyPrefix, "key-prefix", "LIC", "`prefix` of license keys, 2 to 8 of A-Z 0-9")
			fs.IntVar(&devices, "max-devices", 3, "maximum `number` of devices of a license; 0: unlimited")
			fs.StringVar(&terms.Validity, "validity", "",
				"`duration` of a license, such as P1Y or P30D (default: the license never expires)")
			fs.StringVar(&terms.ValidityFrom, "validity-from", "issue",
				"when the duration starts: `issue` or activation")
			fs.StringVar(&terms.Grace, "grace", "",
				"`duration` after the end of a license, such as P7D, for which bound devices may go on (default: none)")
			fs.BoolVar(&terms.SelfServiceDeactivation, "self-service-deactivation", false,
				"allow users to deactivate their devices")
			fs.IntVar(&terms.RemovalsPerMonth, "removals-per-month", 0,
				"maximum `number` of deactivations by users per month; 0: unlimited")
			fs.StringVar(&extra, "metadata", "", "JSON `object` to store with the product, or @ and a file name")
			fs.StringVar(&entitled, "entitlements", "",
				"JSON `object` of the entitlements of new licenses, or @ and a file name")
			fs.StringVar(&terms.DeviceMode, "device-mode", "bound",
				"`mode` of devices: bound until they are removed, or leased (floating licenses)")
			fs.IntVar(&terms.LeaseSeconds, "lease-seconds", 0, "`length` of a lease, in seconds; with leased")
			fs.IntVar(&terms.MaxLeaseSeconds, "max-lease-seconds", 0,
				"`length` of the longest lease that a device may ask for, in seconds (default: lease-seconds)")
			trial.add(cmd)
			fs.StringVar(&billing.Interval, "billing", "",
				"`interval` of the payments of a subscription, such as P1M or P1Y (default: orders are paid once)")
			fs.StringVar(&billing.Grace, "billing-grace", "", "`duration` between the end of the paid period and the "+
				"end of the license; with --billing (default: P3D)")
			fs.StringVar(&terms.InactiveAfter, "inactive-after", "", "`duration` without use after which a device "+
				"loses its slot to another, such as P90D (default: never)")
			fs.IntVar(&match.AtLeast, "match-at-least", 0, "`number` of equal components by which a device is "+
				"recognized under a new id (default: none is)")
			fs.IntVar(&match.ChangesPerMonth, "changes-per-month", 0,
				"maximum `number` of devices of a license that get a new id per month (default: 4)")
			fs.BoolVar(&terms.Receipt, "receipt", false, "answer every activation, validation and trial with a receipt")
			fs.StringVar(&terms.ReceiptValidity, "receipt-validity", "",
				"`duration` for which a receipt is valid, PT1M to P90D (default: P7D)")
			fs.StringVar(&terms.RevocationMaxAge, "revocation-max-age", "", "`duration` for which a receipt counts "+
				"without a newer list of revocations, PT1M to P90D (default: until its end)")
			Complete(cmd, "validity-from", "issue", "activation")
			Complete(cmd, "device-mode", "bound", "leased")
		},
		run: func(c *session, args []string) (err error) {
			terms.MaxDevices = &devices
			if terms.DeviceMatch = nil; match != (client.DeviceMatch{}) {
				terms.DeviceMatch = &match
			}
			if terms.Billing = nil; billing != (client.Billing{}) {
				terms.Billing = &billing
			}
			if terms.Metadata, err = metadata(extra); err != nil {
				return err
			}
			if terms.Entitlements, err = entitlements(entitled); err != nil {
				return err
			}
			if terms.Trial, err = trial.terms(); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Products.Put(c.ctx, args[0], terms, as...))
			})
		},
	})
}

func (s productGroup) productsDelete() *cobra.Command {
	return s.command(spec{
		use: "delete PRODUCT_ID", short: "Remove a product",
		long:    "Remove a product. Its licenses keep their terms. The command asks for confirmation on a terminal.",
		example: `  licet products delete editor`,
		route:   "DELETE /v1/products/{product_id}", scope: "products",
		flags: yesFlag,
		run: func(c *session, args []string) error {
			if err := c.confirm("Remove the product %s at %s?", args[0], c.target.url); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return api.Products.Delete(c.ctx, args[0], as...)
			})
		},
	})
}
