package bulk

import (
	"testing"

	"licet/client"
)

// TestOrderRow: the amounts of a subscription's order include its invoices, and a fee of 0 is not an unknown fee.
func TestOrderRow(t *testing.T) {
	order := client.Order{Amount: 4900, Currency: "USD", AmountPaid: 9800, AmountRefunded: 4900, Fee: new(int64(344))}
	cell := func(column, want string) {
		t.Helper()
		row := exportedOrder(&order)
		for i, name := range OrderColumns() {
			if name == column && row[i] != want {
				t.Errorf("%s is %q, want %q", column, row[i], want)
			}
		}
	}
	cell("gross", "98.00")
	cell("refunded", "49.00")
	cell("fee", "3.44")
	order.Fee = new(int64)
	cell("fee", "0.00")
	order.Fee = nil
	cell("fee", "")
}
