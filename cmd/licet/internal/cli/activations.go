package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
)

// pinFlags adds the flags for what a license must belong to; product may be nil.
func pinFlags(cmd *cobra.Command, product, account, mode *string) {
	if product != nil {
		cmd.Flags().StringVar(product, "product-id", "", "`product` that the license must have")
	}
	cmd.Flags().StringVar(account, "account-id", "",
		"`account` that the license must have; required if LICENSE_KEY is a key of another service")
	cmd.Flags().StringVar(mode, "mode", "",
		"`mode` that the license must have: test or live; for a key of another service, live unless you set test")
	Complete(cmd, "mode", "test", "live")
}

func leaseFlag(cmd *cobra.Command, seconds *int) {
	cmd.Flags().IntVar(seconds, "lease-seconds", 0,
		"`length` of the lease to ask for, in seconds; only for floating licenses (default: the product's)")
}

func receiptFlags(cmd *cobra.Command, in *client.ReceiptRequest) {
	fs := cmd.Flags()
	fs.BoolVar(&in.Receipt, "receipt", false, "ask for a receipt, with which a program checks the license offline")
	fs.IntVar(&in.ReceiptSeconds, "receipt-seconds", 0,
		"`length` of the receipt's validity, in seconds (default: the product's)")
	fs.StringVar(&in.Nonce, "nonce", "", "`text` that the receipt repeats")
}

func componentFlag(cmd *cobra.Command, parts *map[string]string) {
	cmd.Flags().StringToStringVar(parts, "component", nil,
		"`NAME=TEXT` of a part of the device, such as disk=SERIAL; sent as a SHA-256 (repeat for each)")
}

// componentHashes returns the components of a device as the service takes them, from the texts of its parts.
func componentHashes(parts map[string]string) map[string]string {
	hashes := make(map[string]string)
	for name, text := range parts {
		hashes[name] = client.ComponentHash(text)
	}
	return hashes
}

func (s licenseGroup) licensesActivate() *cobra.Command {
	var in client.Activation
	var parts map[string]string
	return s.command(spec{
		use: "activate LICENSE_KEY DEVICE_ID", short: "Bind a device to a license",
		example: `  licet licenses activate LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 laptop-1 --device-name "My laptop"`,
		route:   "POST /v1/licenses/activate",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&in.DeviceName, "device-name", "", "`name` of the device, for people")
			componentFlag(cmd, &parts)
			leaseFlag(cmd, &in.LeaseSeconds)
			receiptFlags(cmd, &in.ReceiptRequest)
			pinFlags(cmd, &in.ProductID, &in.AccountID, &in.Mode)
		},
		run: func(c *session, args []string) error {
			in.LicenseKey, in.DeviceID, in.DeviceComponents = args[0], args[1], componentHashes(parts)
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Activate(c.ctx, in, as...))
			})
		},
	})
}

func (s licenseGroup) licensesValidate() *cobra.Command {
	var in client.Validation
	return s.command(spec{
		use: "validate LICENSE_KEY DEVICE_ID", short: "Check whether a device may use a license",
		long:    "Check whether a device may use a license. Exit code 1 means that the device may not.",
		example: `  licet licenses validate LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 laptop-1`,
		route:   "POST /v1/licenses/validate",
		flags: func(cmd *cobra.Command) {
			leaseFlag(cmd, &in.LeaseSeconds)
			receiptFlags(cmd, &in.ReceiptRequest)
			pinFlags(cmd, &in.ProductID, &in.AccountID, &in.Mode)
		},
		run: func(c *session, args []string) error {
			in.LicenseKey, in.DeviceID = args[0], args[1]
			var v *client.Validity
			err := c.show(func(api *client.Client, as ...client.CallOption) (err error) {
				v, err = api.Validate(c.ctx, in, as...)
				return err
			})
			if err == nil && !v.Valid {
				return fmt.Errorf("the license is not valid for this device: %s", v.Reason)
			}
			return err
		},
	})
}

func (s licenseGroup) licensesDeactivate() *cobra.Command {
	var in client.Deactivation
	return s.command(spec{
		use: "deactivate LICENSE_KEY DEVICE_ID", short: "Remove a device as its user would, if the product allows it",
		example: `  licet licenses deactivate LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1 laptop-1`,
		route:   "POST /v1/licenses/deactivate",
		flags:   func(cmd *cobra.Command) { pinFlags(cmd, nil, &in.AccountID, &in.Mode) },
		run: func(c *session, args []string) error {
			in.LicenseKey, in.DeviceID = args[0], args[1]
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Deactivate(c.ctx, in, as...))
			})
		},
	})
}
