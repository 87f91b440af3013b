package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"licet/client"
	"licet/licensing"
)

// orderGroup builds the commands of licet orders.
type orderGroup struct{ Setup }

const exampleOrder = "ord_VQ01Q3G996SE003GW58W4CN32E1Z"

func (s orderGroup) orderCommands() *cobra.Command {
	cmd := group("orders", "List, create, cancel and refund orders, and record their payments",
		`  licet orders create --product-id editor --price 49.00 --currency USD
  licet orders get `+exampleOrder+`
  licet orders list --status paid --all --output json`,
		s.ordersList(), s.ordersGet(), s.ordersCreate(), s.ordersCancel(), s.ordersRecordPayment(),
		s.ordersPayments(), s.ordersRefund(), s.ordersCancelSubscription(),
		s.ordersResumeSubscription(), s.ordersChangeSubscription(), s.ordersCardPage(), s.ordersEvents(),
		s.ordersExport())
	cmd.SuggestFor = []string{"subscription", "subscriptions"}
	return cmd
}

// words converts values of a string type to strings.
func words[T ~string](all []T) []string {
	plain := make([]string, len(all))
	for i, word := range all {
		plain[i] = string(word)
	}
	return plain
}

func (s orderGroup) ordersList() *cobra.Command {
	var filter client.OrderFilter
	return s.command(spec{
		use: "list", short: "List orders, newest first",
		example: `  licet orders list --status paid --limit 50
  licet orders list --buyer-email anna@example.com
  licet orders list --paid-from 2031-01-01 --paid-to 2031-02-01 --all
  licet orders list --reference INV-2031-0042
  licet orders list --product-id editor --all --output json`,
		route: "GET /v1/orders", scope: "orders:read",
		flags: func(cmd *cobra.Command) {
			orderFilterFlags(cmd, &filter)
			listFlags(cmd, pageStandard, pageMost)
		},
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member: "orders",
				columns: []string{"order_no", "status", "product_id", "amount", "buyer_email", "created_at", "paid_at",
					"license_key"},
				create: "licet orders create --product-id editor --price 49.00 --currency USD creates an order",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.Orders.List(c.ctx, filter, page, as...))
				},
			}, pageMost)
		},
	})
}

// orderFilterFlags adds the flags that select orders.
func orderFilterFlags(cmd *cobra.Command, filter *client.OrderFilter) {
	fs := cmd.Flags()
	fs.StringVar(&filter.Status, "status", "",
		"only orders in this `state`: unpaid, paid, expired, canceled or refunded")
	fs.StringVar(&filter.ProductID, "product-id", "", "only orders of this `product`")
	fs.StringVar(&filter.BuyerEmail, "buyer-email", "", "only orders of the buyer with this `address`")
	providers := words(licensing.PaymentProviders())
	fs.StringVar(&filter.Provider, "payment-provider", "",
		"only orders that are paid at this `provider`: "+either(providers, "or"))
	fs.StringVar(&filter.Reference, "reference", "", "only the order of the payment with this `reference`")
	for _, is := range []struct {
		name, were string
		period     *client.Period
	}{
		{"created", "created", &filter.Created}, {"paid", "paid", &filter.Paid},
		{"refunded", "refunded as a whole", &filter.Refunded},
	} {
		which := "only orders that were " + is.were
		fs.Var(momentValue{&is.period.From}, is.name+"-from", which+" at this `time` or later")
		fs.Var(momentValue{&is.period.To}, is.name+"-to", which+" before this `time`")
	}
	Complete(cmd, "status", words(licensing.OrderStatuses())...)
	Complete(cmd, "payment-provider", providers...)
}

// momentValue is a flag with a time: RFC 3339, or a date, which begins at midnight in UTC.
type momentValue struct{ at *time.Time }

// Set implements pflag.Value.
func (v momentValue) Set(text string) error {
	at, ok := licensing.ParseMoment(text)
	if !ok {
		return errors.New("write a date such as 2031-01-31, or a time such as 2031-01-31T12:00:00Z")
	}
	*v.at = at
	return nil
}

// String implements pflag.Value.
func (v momentValue) String() string {
	if v.at == nil || v.at.IsZero() {
		return ""
	}
	return licensing.FormatTime(*v.at)
}

// Type implements pflag.Value.
func (v momentValue) Type() string { return "time" }

func (s orderGroup) ordersGet() *cobra.Command {
	return s.command(spec{
		use: "get ORDER_NO", short: "Show an order",
		example: `  licet orders get ` + exampleOrder,
		route:   "GET /v1/orders/{order_no}", scope: "orders:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Orders.Get(c.ctx, args[0], as...))
			})
		},
	})
}

func (s orderGroup) ordersCreate() *cobra.Command {
	var order client.NewOrder
	var paying price
	var extra string
	return s.command(spec{
		use: "create", short: "Create an order",
		long: `Create an order and print it with pay_url, where the buyer pays. Anyone with the URL can pay. An
order with amount 0 is paid at once.`,
		example: `  licet orders create --product-id editor --price 49.00 --currency USD
  licet orders create --product-id editor --price 49.00 --currency USD \
    --buyer-email anna@example.com --idempotency-key checkout-8114
  licet orders create --product-id editor --price 900.00 --currency USD --quantity 20`,
		route: "POST /v1/orders", scope: "orders",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&order.ProductID, "product-id", "", "`product` of the order")
			paying.addFlags(cmd, 0, "")
			quantityFlag(fs, &order)
			fs.StringVar(&order.Description, "description", "", "`text` about the order")
			fs.StringVar(&order.BuyerEmail, "buyer-email", "", "e-mail `address` of the buyer")
			fs.StringVar(&extra, "metadata", "", "JSON `object` to store with the order, or @ and a file name")
			fs.StringVar(&order.SuccessURL, "success-url", "", "`URL` where the buyer goes after paying")
			fs.StringVar(&order.UpgradeOf, "upgrade-of", "", "license `key` of the trial that the payment upgrades")
			fs.StringVar(&order.PaymentProvider, "payment-provider", "",
				"`provider` of the payment: outside, if you record the payment yourself with record-payment")
			Complete(cmd, "payment-provider", string(licensing.ProviderOutside))
			onceFlag(fs)
			for _, name := range []string{"product-id", "currency"} {
				_ = cmd.MarkFlagRequired(name)
			}
			cmd.MarkFlagsOneRequired("price", "amount")
		},
		run: func(c *session, _ []string) (err error) {
			if order.Metadata, err = metadata(extra); err != nil {
				return err
			}
			if order.Amount, err = paying.minor(c.cmd); err != nil {
				return err
			}
			order.Currency = paying.currency
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Orders.Create(c.ctx, order, as...))
			})
		},
	})
}

// quantityFlag adds the flag of an order's number of licenses. Left out, the request has no quantity, which older
// services don't know.
func quantityFlag(fs *pflag.FlagSet, order *client.NewOrder) {
	fs.IntVar(&order.Quantity, "quantity", 0, "`number` of licenses; the price is for all of them (default 1)")
}

func (s orderGroup) ordersCancel() *cobra.Command {
	return s.orderChange(spec{
		use: "cancel ORDER_NO", short: "Cancel an unpaid order",
		example: `  licet orders cancel ` + exampleOrder + ` --reason "The buyer changed her mind."`,
		route:   "POST /v1/orders/{order_no}/cancel", scope: "orders",
	}, "", (*client.OrderService).Cancel)
}

func (s orderGroup) ordersRecordPayment() *cobra.Command {
	var payment client.OutsidePayment
	var paidAt string
	return s.command(spec{
		use: "record-payment ORDER_NO", short: "Record a payment that you have received yourself",
		long: `Record a payment that you received yourself, such as a bank transfer, and show the order with its
license key. Recording the same payment again changes nothing.`,
		example: `  licet orders record-payment ` + exampleOrder + ` --reference INV-2031-0042
  licet orders record-payment ` + exampleOrder + ` --reference PO-77 --amount 4900 \
    --paid-at 2031-01-31T12:00:00Z`,
		route: "POST /v1/orders/{order_no}/payments", scope: "orders:payments",
		resumes: true, resumeHint: "repeat the command: a payment is recorded once",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&payment.Reference, "reference", "",
				"your `name` for the payment, new for each payment, such as an invoice number")
			fs.Var(&minorUnits{into: &payment.Amount}, "amount",
				"`amount` that you have received, in minor units; must be the order's (default the order's)")
			fs.StringVar(&paidAt, "paid-at", "", "`time` of the payment, in RFC 3339 (default now)")
			onceFlag(fs)
			_ = cmd.MarkFlagRequired("reference")
		},
		run: func(c *session, args []string) (err error) {
			if payment.PaidAt, err = moment("paid-at", paidAt); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Orders.RecordPayment(c.ctx, args[0], payment, as...))
			})
		},
	})
}

func (s orderGroup) ordersPayments() *cobra.Command {
	return s.command(spec{
		use: "payments ORDER_NO", short: "List the payments of an order, newest first",
		example: `  licet orders payments ` + exampleOrder,
		route:   "GET /v1/orders/{order_no}/payments", scope: "orders:read",
		flags: func(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) },
		run: func(c *session, args []string) error {
			return c.list(listing{
				member:  "payments",
				columns: []string{"type", "reference", "status", "amount", "fee", "payment_provider", "paid_at"},
				create:  "a payment is recorded when the buyer pays",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.Orders.ListPayments(c.ctx, args[0], page, as...))
				},
			}, pageMost)
		},
	})
}

func (s orderGroup) ordersRefund() *cobra.Command {
	var amount int64
	var invoice string
	given := func() bool { return false }
	is := spec{
		use: "refund ORDER_NO", short: "Refund a paid order and revoke its license",
		long: `Refund a paid order and revoke its license, or refund a part of the payment with --amount: then the license
stays as it is until nothing is left of the payment. --invoice refunds an invoice of the order's subscription in place
of the first payment, and takes back the period that it paid for. The command asks for confirmation on a terminal.`,
		example: `  licet orders refund ` + exampleOrder + ` --reason "It does not run."
  licet orders refund ` + exampleOrder + ` --amount 500 --reason "Paid too much."
  licet orders refund ` + exampleOrder + ` --invoice in_1NXWPnCo6bFb1KQto6C8OWvE`,
		route: "POST /v1/orders/{order_no}/refund", scope: "orders:refunds",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().Var(&minorUnits{into: &amount}, "amount",
				"`amount` to refund, in minor units (default all that is left of the payment)")
			cmd.Flags().StringVar(&invoice, "invoice", "",
				"`reference` of the invoice to refund, as licet orders payments shows it")
			given = func() bool { return cmd.Flags().Changed("amount") }
		},
	}
	return s.orderChange(is, "Refund", func(
		orders *client.OrderService, ctx context.Context, orderNo, reason string, as ...client.CallOption,
	) (*client.Order, error) {
		switch {
		case invoice != "" && reason != "":
			return nil, errors.New(
				"--reason goes without --invoice: it is the reason of the order's status, which stays")
		case invoice != "":
			return orders.RefundInvoice(ctx, orderNo, invoice, amount, as...)
		case given():
			return orders.RefundPart(ctx, orderNo, amount, reason, as...)
		}
		return orders.Refund(ctx, orderNo, reason, as...)
	})
}

// orderChange returns a command that changes an order. If ask is not empty, the command asks for confirmation with it.
func (s orderGroup) orderChange(
	is spec, ask string, change func(*client.OrderService, context.Context, string, string,
		...client.CallOption) (*client.Order, error),
) *cobra.Command {
	var reason string
	own := is.flags
	is.flags = func(cmd *cobra.Command) {
		if own != nil {
			own(cmd)
		}
		cmd.Flags().StringVar(&reason, "reason", "", "`reason` of the change")
		onceFlag(cmd.Flags())
		if ask != "" {
			yesFlag(cmd)
		}
	}
	is.run = func(c *session, args []string) error {
		if ask != "" {
			if err := c.confirm("%s the order %s at %s?", ask, args[0], c.target.url); err != nil {
				return err
			}
		}
		return c.show(func(api *client.Client, as ...client.CallOption) error {
			return only(change(api.Orders, c.ctx, args[0], reason, as...))
		})
	}
	return s.command(is)
}
