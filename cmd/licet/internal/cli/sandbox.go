package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/licensing"
)

// sandboxGroup builds the commands of licet sandbox.
type sandboxGroup struct{ Setup }

func (s sandboxGroup) sandboxCommands() *cobra.Command {
	cmd := group("sandbox", "Pay orders without a buyer, in test mode", `  licet sandbox buy editor
  licet sandbox pay `+exampleOrder+`
  licet sandbox decline `+exampleOrder,
		s.sandboxBuy(), s.sandboxPay())
	for _, p := range sandboxPlays {
		cmd.AddCommand(s.sandboxPlay(p))
	}
	cmd.Long = `Pay orders without a buyer, in test mode, and play what buyers and banks do besides. No money moves. The
commands need an API key of test mode, such as that of licet dev.`
	return cmd
}

// sandboxPlay is a command that plays an action about an order.
type sandboxPlay struct {
	action      client.SandboxAction
	short, long string
}

var sandboxPlays = []sandboxPlay{
	{client.SandboxCancel, "Cancel an order of test mode, as its buyer", ``},
	{client.SandboxDecline, "Let the bank decline the payment of an order",
		`Let the bank decline the payment of an unpaid order of test mode. The order stays unpaid, and its buyer may
try again.`},
	{client.SandboxPayLater, "Begin a payment of an order that takes its time",
		`Begin a payment of an unpaid order of test mode that takes its time, such as a bank transfer. The payment is
pending until licet sandbox complete or licet sandbox fail, and fails by itself after 24 hours.`},
	{client.SandboxComplete, "Let the pending payment of an order arrive",
		`Let the pending payment of an order of test mode arrive. An expired order becomes paid late, and a canceled
order is refunded.`},
	{client.SandboxFail, "Let the pending payment or refund of an order fail", ``},
	{client.SandboxCallbackTwice, "Pay an order, and report the payment twice",
		`Pay an unpaid order of test mode, and report the payment twice, as a payment provider may do. The order has one
license.`},
	{client.SandboxCallbackLate, "Pay an order, and report the payment late",
		`Pay an unpaid order of test mode, and report the payment late. The order stays unpaid until licet sandbox
complete, or until the service asks the sandbox after about two minutes.`},
	{client.SandboxRefundFails, "Let the next refund of an order fail",
		`Let the next refund of a paid order of test mode fail. The refund is pending at first. It fails with
licet sandbox fail, or by itself within about two minutes: then the order is paid, and its license stays valid.`},
	{client.SandboxInvoicePaid, "Let the next invoice of a subscription be paid",
		`Let the unpaid invoice of a subscription of test mode be paid, or else the next invoice, before it is due. The
license ends later.`},
	{client.SandboxInvoiceFailed, "Let the payment of a subscription's next invoice fail",
		`Let the next invoice of a subscription of test mode be due now, and its payment fail. The subscription is past
due until licet sandbox invoice-paid, and ends with the period of the invoice.`},
	{client.SandboxCancelSubscription, "End a subscription of test mode now",
		`End a subscription of test mode now, as its buyer or the payment provider does. The license works until the end
of the time that is paid for.`},
}

func (s sandboxGroup) sandboxPlay(p sandboxPlay) *cobra.Command {
	name := strings.ReplaceAll(string(p.action), "_", "-")
	return s.command(spec{
		use: name + " ORDER_NO", short: p.short, long: p.long,
		example: "  licet sandbox " + name + " " + exampleOrder,
		route:   "PUT /v1/orders/{order_no}/sandbox", scope: "orders",
		resumeHint: "look at the order before you repeat the command: licet orders get",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Sandbox.Play(c.ctx, args[0], p.action, as...))
			})
		},
	})
}

func (s sandboxGroup) sandboxPay() *cobra.Command {
	return s.command(spec{
		use: "pay ORDER_NO", short: "Pay an order of test mode and show it",
		long: `Pay an order of test mode as the buyer does on the pay page, and show the order with its license key.
Paying a paid order changes nothing.`,
		example: `  licet sandbox pay ` + exampleOrder,
		route:   "PUT /v1/orders/{order_no}/sandbox_payment", scope: "orders",
		resumes: true, resumeHint: "repeat the command: an order is paid once",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Sandbox.Pay(c.ctx, args[0], as...))
			})
		},
	})
}

func (s sandboxGroup) sandboxBuy() *cobra.Command {
	order := client.NewOrder{Description: "licet sandbox buy"}
	var paying price
	return s.command(spec{
		use: "buy PRODUCT_ID", short: "Order a product, pay and print the license key",
		long: `Order a product, pay the order in the sandbox, and print the license key, or each license key on a line
of its own. If the product does not exist, the order creates the product. With --output json, the command prints the
paid order.`,
		example: `  licet sandbox buy editor
  licet sandbox buy editor --price 19.00 --currency EUR --buyer-email anna@example.com
  licet licenses activate "$(licet sandbox buy editor)" laptop-1`,
		scope: "orders",
		flags: func(cmd *cobra.Command) {
			paying.addFlags(cmd, 4900, "USD")
			quantityFlag(cmd.Flags(), &order)
			cmd.Flags().StringVar(&order.BuyerEmail, "buyer-email", "", "e-mail `address` of the buyer")
		},
		run: func(c *session, args []string) (err error) {
			if modeOf(c.target.apiKey) == string(licensing.Live) {
				return fmt.Errorf("the API key from %s is of live mode: the sandbox needs an API key of test mode",
					c.target.keyFrom)
			}
			order.ProductID, order.Currency = args[0], paying.currency
			if order.Amount, err = paying.minor(c.cmd); err != nil {
				return err
			}
			return c.buy(order)
		},
	})
}

// buy creates an order, pays it and prints its license key.
func (c *session) buy(order client.NewOrder) error {
	var made *client.Order
	if _, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
		made, err = api.Orders.Create(c.ctx, order, as...)
		return err
	}); err != nil {
		return err
	}
	number := made.OrderNo
	data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
		made, err = api.Sandbox.Pay(c.ctx, number, as...)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w; the order is %s: see licet orders get", c.explain(err), number)
	}
	if c.json {
		return c.print(data)
	}
	keys := []string{made.LicenseKey}
	if len(made.LicenseKeys) > 1 {
		keys = made.LicenseKeys
	}
	for _, key := range keys {
		if err := c.write([]byte(plain(key) + "\n")); err != nil {
			return err
		}
	}
	if missing := made.Quantity - made.LicensesIssued; missing > 0 {
		fmt.Fprintf(c.stderr, "%d licenses follow within a minute: see licet orders get %s\n", missing,
			plain(made.OrderNo))
	}
	at := ""
	if c.target.urlFrom != c.setup.DevEnv { // it may be another service than that of the directory
		at = fmt.Sprintf("\nThe service is %s (from %s).", c.target.url, c.target.urlFrom)
	}
	fmt.Fprintf(c.stderr,
		"Paid %s for %s in the sandbox.%s\nActivate a device with:\n  licet licenses activate %s laptop-1\n",
		plain(made.OrderNo), plain(made.ProductID), at, plain(made.LicenseKey))
	return nil
}
