package cli

import (
	"github.com/spf13/cobra"

	"licet/client"
)

const (
	pageStandard, pageMost     = 20, 100
	devicesStandard, deviceMax = 100, 1000
)

func (s Setup) productCommands() *cobra.Command {
	return group("products", "List, describe and remove products", `  licet products put editor --name Editor --max-devices 5 --validity P1Y
  licet products list
  licet products get editor --output json`,
		s.productsList(), s.productsGet(), s.productsPut(), s.productsDelete())
}

func (s Setup) productsList() *cobra.Command {
	return s.command(spec{
		use: "list", short: "List products, the newest first",
		example: `  licet products list
  licet products list --all --output json`,
		args: cobra.NoArgs, route: "GET /v1/products", scope: "products:read",
		flags: func(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) },
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member:  "products",
				columns: []string{"product_id", "name", "key_prefix", "max_devices", "validity", "validity_from", "created_at"},
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.ListProducts(c.ctx, page, as...))
				},
			}, pageMost)
		},
	})
}

// next gives what leads to the next page.
func next[T any](list *client.List[T], err error) (string, error) {
	if err != nil {
		return "", err
	}
	return list.NextCursor, nil
}

func (s Setup) productsGet() *cobra.Command {
	return s.command(spec{
		use: "get PRODUCT_ID", short: "Look a product up",
		example: `  licet products get editor`,
		args:    cobra.ExactArgs(1), route: "GET /v1/products/{product_id}", scope: "products:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Product(c.ctx, args[0], as...))
			})
		},
	})
}

func (s Setup) productsPut() *cobra.Command {
	var terms client.ProductTerms
	var devices int
	var extra string
	return s.command(spec{
		use: "put PRODUCT_ID", short: "Describe a product, whether it is there or not",
		long: `Describe a product, whether it is there or not. What is left out is as the flag's
default says, and not as it was before. Licenses that there are keep their terms.`,
		example: `  licet products put editor --name Editor --key-prefix EDIT --max-devices 5 --validity P1Y
  licet products put game --self-service-deactivation --removals-per-month 3 --metadata '{"shelf":7}'`,
		args: cobra.ExactArgs(1), route: "PUT /v1/products/{product_id}", scope: "products",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&terms.Name, "name", "", "`name`, for people")
			fs.StringVar(&terms.KeyPrefix, "key-prefix", "LIC", "`text` that license keys begin with, 2 to 8 of A-Z 0-9")
			fs.IntVar(&devices, "max-devices", 3, "how `many` devices a license is for; 0: any number")
			fs.StringVar(&terms.Validity, "validity", "", "how `long` a license is good, like P1Y or P30D; empty: for ever")
			fs.StringVar(&terms.ValidityFrom, "validity-from", "issue", "whether that runs from `issue` or from the first activation")
			fs.BoolVar(&terms.SelfServiceDeactivation, "self-service-deactivation", false, "let users deactivate devices by themselves")
			fs.IntVar(&terms.RemovalsPerMonth, "removals-per-month", 0, "how `many` of these a month; 0: any number")
			fs.StringVar(&extra, "metadata", "", "`object` of JSON to keep with it, or @ and a file")
			Complete(cmd, "validity-from", "issue", "activation")
		},
		run: func(c *session, args []string) (err error) {
			terms.MaxDevices = &devices
			if terms.Metadata, err = metadata(extra); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.PutProduct(c.ctx, args[0], terms, as...))
			})
		},
	})
}

func (s Setup) productsDelete() *cobra.Command {
	return s.command(spec{
		use: "delete PRODUCT_ID", short: "Remove a product",
		long:    "Remove a product. Its licenses keep their terms. On a terminal it asks before.",
		example: `  licet products delete editor`,
		args:    cobra.ExactArgs(1), route: "DELETE /v1/products/{product_id}", scope: "products",
		flags: yesFlag,
		run: func(c *session, args []string) error {
			if err := c.confirm("Remove the product %s at %s?", args[0], c.target.url); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return api.DeleteProduct(c.ctx, args[0], as...)
			})
		},
	})
}
