package cli

import (
	"github.com/spf13/cobra"

	"licet/client"
)

// trialGroup builds the commands of licet trials.
type trialGroup struct{ Setup }

func (s trialGroup) trialCommands() *cobra.Command {
	return group("trials", "Start trials of products",
		`  licet trials start editor laptop-1 --account-id acct_01jd4q8x2m7r3n5t9v1w4y6z8a`, s.trialsStart())
}

func (s trialGroup) trialsStart() *cobra.Command {
	var in client.NewTrial
	var parts map[string]string
	return s.command(spec{
		use: "start PRODUCT_ID DEVICE_ID", short: "Issue a license for a trial and bind the device",
		long: `Issue a license for a trial and bind the device. The same device gets the same license again
until an order upgrades it. A product that may be tried once for an e-mail address needs
--buyer-email and an API key.`,
		example: `  licet trials start editor laptop-1 --account-id acct_01jd4q8x2m7r3n5t9v1w4y6z8a --mode live
  licet trials start editor laptop-1 --buyer-email anna@example.com`,
		route: "POST /v1/trials",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&in.DeviceName, "device-name", "", "`name` of the device, for people")
			fs.StringVar(&in.BuyerEmail, "buyer-email", "", "e-mail `address` of the user")
			fs.StringVar(&in.AccountID, "account-id", "", "`account` of the product; required without an API key")
			fs.StringVar(&in.Mode, "mode", "", "`mode` of the product: test or live (default without an API key: live)")
			Complete(cmd, "mode", "test", "live")
			componentFlag(cmd, &parts)
			leaseFlag(cmd, &in.LeaseSeconds)
			receiptFlags(cmd, &in.ReceiptRequest)
		},
		run: func(c *session, args []string) error {
			in.ProductID, in.DeviceID, in.DeviceComponents = args[0], args[1], componentHashes(parts)
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.StartTrial(c.ctx, in, as...))
			})
		},
	})
}

// trialFlags are the flags for the trials of a product.
type trialFlags struct {
	client.TrialTerms
	entitled string
}

func (f *trialFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.Validity, "trial-validity", "", "`duration` of a trial, such as P14D (default: no trials)")
	fs.StringVar(&f.Per, "trial-per", "device", "how often the product may be tried: once for a `device` or an email")
	fs.IntVar(&f.MaxDevices, "trial-max-devices", 1, "maximum `number` of devices of a trial, 1 to 16")
	fs.StringVar(&f.entitled, "trial-entitlements", "",
		"JSON `object` of the entitlements of trials, or @ and a file name (default: those of the product)")
	Complete(cmd, "trial-per", "device", "email")
}

// terms returns the terms of trials; nil: there are none.
func (f *trialFlags) terms() (*client.TrialTerms, error) {
	if f.Validity == "" {
		return nil, nil
	}
	var err error
	f.Entitlements, err = jsonFlag("trial-entitlements", `{"export":true,"projects":10}`, f.entitled)
	return &f.TrialTerms, err
}
