package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// line is one sum, as each of the books has it.
type line struct {
	what                              string
	ledgers, records, orders, rep, ex int64
	unreported                        bool // the sales report does not have the sum
}

func (l line) equal() bool {
	return l.ledgers == l.records && l.ledgers == l.orders && (l.ledgers == l.rep || l.unreported) &&
		l.ledgers == l.ex
}

func (l line) String() string {
	return fmt.Sprintf("%s: %d in the ledgers of Stripe and of the shop, %d in the payment records, %d in the orders, "+
		"%s in the sales report, %d in the export", l.what, l.ledgers, l.records, l.orders, l.reported(), l.ex)
}

// reported returns the sum in the sales report as text.
func (l line) reported() string {
	if l.unreported {
		return "none"
	}
	return strconv.FormatInt(l.rep, 10)
}

// sumBooks adds up each of the books, by currency.
func sumBooks(buyers []*buyer, b *books) []line {
	sums := map[string]*line{}
	sum := func(currency, kind string) *line {
		what := currency + " " + kind
		if sums[what] == nil {
			sums[what] = &line{what: what, unreported: kind == "fees"}
		}
		return sums[what]
	}
	money := moneyOf(buyers, b)
	for _, one := range buyers {
		if m := money[one.order]; m != nil {
			sum(one.price.currency, "paid").ledgers += m.paid + m.further()
			sum(one.price.currency, "refunded").ledgers += m.returned + m.given
			sum(one.price.currency, "fees").ledgers += m.fee
		}
	}
	for _, payments := range b.payments {
		for _, p := range payments {
			if p.Fee != nil {
				sum(p.Currency, "fees").records += *p.Fee
			}
			switch {
			case p.Type == "payment", p.Type == "invoice", p.Type == "second":
				sum(p.Currency, "paid").records += p.Amount
			case p.Status == "succeeded", p.Status == "lost":
				sum(p.Currency, "refunded").records += p.Amount
			}
		}
	}
	for i := range b.orders {
		o := &b.orders[i]
		sum(o.Currency, "paid").orders += o.AmountPaid
		sum(o.Currency, "refunded").orders += o.AmountRefunded
		if o.Fee != nil {
			sum(o.Currency, "fees").orders += *o.Fee
		}
	}
	for _, t := range b.report.Totals {
		sum(t.Currency, "paid").rep += t.Gross
		sum(t.Currency, "refunded").rep += t.Refunded
	}
	for _, r := range b.export {
		for column, kind := range map[string]string{"gross": "paid", "refunded": "refunded", "fee": "fees"} {
			amount, err := r.number(column)
			switch {
			case column == "fee" && r[column] == "": // not known
				amount = 0
			case err != nil:
				amount = -1
			}
			sum(r["currency"], kind).ex += amount
		}
	}
	var list []line
	for _, what := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, *sums[what])
	}
	return list
}
