package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/licensing"
)

// reportGroup builds the commands of licet reports.
type reportGroup struct{ Setup }

func (s reportGroup) reportCommands() *cobra.Command {
	return group("reports", "Sum sales",
		`  licet reports sales --from 2031-01-01 --to 2032-01-01 --by month`, s.reportsSales())
}

func (s reportGroup) reportsSales() *cobra.Command {
	var of client.SalesReportOf
	return s.command(spec{
		use: "sales", short: "Sum payments and refunds by currency",
		long: `Sum payments and refunds by currency, and by day or month in UTC. A report covers at most 366 days
and 100,000 payments and refunds; beyond that, use licet orders export.`,
		example: `  licet reports sales --from 2031-01-01 --to 2032-01-01
  licet reports sales --from 2031-01-01 --to 2031-02-01 --by day --product-id editor`,
		route: "GET /v1/reports/sales", scope: "orders:read",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.Var(momentValue{&of.Period.From}, "from",
				"sum payments and refunds from this `time` on: a date, or RFC 3339")
			fs.Var(momentValue{&of.Period.To}, "to", "sum payments and refunds before this `time`")
			fs.StringVar(&of.By, "by", client.ByMonth, "`length` of the periods: day or month")
			fs.StringVar(&of.ProductID, "product-id", "", "only sales of this `product`")
			Complete(cmd, "by", words(licensing.ReportSteps())...)
			for _, name := range []string{"from", "to"} {
				_ = cmd.MarkFlagRequired(name)
			}
		},
		run: func(c *session, _ []string) error {
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Reports.Sales(c.ctx, of, as...))
			})
			if err != nil {
				return err
			}
			if c.json {
				return c.print(data)
			}
			return c.salesTable(data)
		},
	})
}

// salesTable prints the periods of a report, and then its totals.
func (c *session) salesTable(data json.RawMessage) error {
	out := c.newListWriter(listing{columns: []string{"period", "currency", "payments", "gross", "refunds", "refunded",
		"net"}})
	for _, part := range []string{"periods", "totals"} {
		items, err := listItems(data, part)
		if err == nil {
			err = out.items(items)
		}
		if err != nil {
			return err
		}
	}
	out.end()
	o, err := parseObject(data)
	if err != nil {
		return err
	}
	if unread := o.cell("unreadable"); unread != "0" {
		fmt.Fprintf(c.stderr, "the sums lack %s payments and refunds that the service could not read\n", unread)
	}
	if !out.any {
		fmt.Fprintln(c.stderr, "no payments and refunds in this span")
	}
	_, err = fmt.Fprintf(c.stderr, "as of %s, revision %s; complete from %s on\n", o.cell("as_of"), o.cell("revision"),
		o.cell("complete_from"))
	return err
}
