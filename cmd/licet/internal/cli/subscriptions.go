package cli

import (
	"github.com/spf13/cobra"

	"licet/client"
)

const scopeSubscriptions = "orders:subscriptions"

func (s orderGroup) ordersCancelSubscription() *cobra.Command {
	var now bool
	return s.command(spec{
		use: "cancel-subscription ORDER_NO", short: "End a subscription with its period, or now",
		long: `End the subscription of an order with the paid period, or now with --now. No money is refunded, and
the license works until the end of the paid time. The command asks for confirmation on a terminal.`,
		example: `  licet orders cancel-subscription ` + exampleOrder + `
  licet orders cancel-subscription ` + exampleOrder + ` --now`,
		route: "POST /v1/orders/{order_no}/subscription/cancel", scope: scopeSubscriptions,
		resumes: true, resumeHint: "repeat the command: a subscription ends once",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&now, "now", false, "end it now; it can't be resumed then")
			onceFlag(cmd.Flags())
			yesFlag(cmd)
		},
		run: func(c *session, args []string) error {
			if err := c.confirm("End the subscription of %s at %s?", args[0], c.target.url); err != nil {
				return err
			}
			at := client.EndOfPeriod
			if now {
				at = client.EndNow
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Subscriptions.Cancel(c.ctx, args[0], at, as...))
			})
		},
	})
}

func (s orderGroup) ordersResumeSubscription() *cobra.Command {
	return s.command(spec{
		use: "resume-subscription ORDER_NO", short: "Let a subscription renew that would end with its period",
		example: `  licet orders resume-subscription ` + exampleOrder,
		route:   "POST /v1/orders/{order_no}/subscription/resume", scope: scopeSubscriptions,
		resumes: true, resumeHint: "repeat the command: it changes nothing twice",
		flags: func(cmd *cobra.Command) { onceFlag(cmd.Flags()) },
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Subscriptions.Resume(c.ctx, args[0], as...))
			})
		},
	})
}

func (s orderGroup) ordersChangeSubscription() *cobra.Command {
	var change client.SubscriptionChange
	var devices int
	var now bool
	return s.command(spec{
		use: "change-subscription ORDER_NO", short: "Change the product, amount or devices of a subscription",
		long: `Change what a subscription pays for from its next period on, or now with --now. Then the buyer pays the
difference for the rest of the period, or gets a credit for the next invoices. If the card is declined, nothing changes.
The command asks for confirmation on a terminal.`,
		example: `  licet orders change-subscription ` + exampleOrder + ` --product-id team --amount 3000
  licet orders change-subscription ` + exampleOrder + ` --amount 1800 --max-devices 6 --now`,
		route: "POST /v1/orders/{order_no}/subscription/change", scope: scopeSubscriptions,
		resumes: true, resumeHint: "repeat the command: the buyer pays the difference once",
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringVar(&change.ProductID, "product-id", "", "another product with the same interval")
			flags.Int64Var(&change.Amount, "amount", 0, "price of each period, in minor units (required)")
			flags.IntVar(&devices, "max-devices", 0, "device limit of the license; 0: unlimited")
			flags.BoolVar(&now, "now", false, "change the subscription now, not with the next period")
			_ = cmd.MarkFlagRequired("amount")
			onceFlag(flags)
			yesFlag(cmd)
		},
		run: func(c *session, args []string) error {
			if err := c.confirm("Change the subscription of %s at %s?", args[0], c.target.url); err != nil {
				return err
			}
			change.MaxDevices = changed(c, "max-devices", devices)
			if now {
				change.At = client.EndNow
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Subscriptions.Change(c.ctx, args[0], change, as...))
			})
		},
	})
}

func (s orderGroup) ordersCardPage() *cobra.Command {
	return s.command(spec{
		use: "card-page ORDER_NO", short: "Make a link where the buyer changes the card of a subscription",
		long: `Make a link to the payment provider's page where the buyer changes the card of a subscription, and show it.
The link is for the buyer alone, and valid for a short time. The sandbox has no such page.`,
		example: `  licet orders card-page ` + exampleOrder,
		route:   "POST /v1/orders/{order_no}/subscription/portal", scope: scopeSubscriptions,
		resumes: true, resumeHint: "repeat the command for another link",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Subscriptions.Portal(c.ctx, args[0], as...))
			})
		},
	})
}
