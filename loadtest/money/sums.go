package main

import (
	"fmt"
	"maps"
	"slices"
)

// line is one sum, as each of the books has it.
type line struct {
	what                              string
	ledgers, records, orders, rep, ex int64
}

func (l line) equal() bool {
	return l.ledgers == l.records && l.ledgers == l.orders && l.ledgers == l.rep && l.ledgers == l.ex
}

func (l line) String() string {
	return fmt.Sprintf("%s: %d in the ledgers of Stripe and of the shop, %d in the payment records, %d in the orders, "+
		"%d in the sales report, %d in the export", l.what, l.ledgers, l.records, l.orders, l.rep, l.ex)
}

// sumBooks adds up each of the books, by currency.
func sumBooks(buyers []*buyer, b *books) []line {
	sums := map[string]*line{}
	sum := func(currency, kind string) *line {
		what := currency + " " + kind
		if sums[what] == nil {
			sums[what] = &line{what: what}
		}
		return sums[what]
	}
	money := moneyOf(buyers, b)
	for _, one := range buyers {
		if m := money[one.order]; m != nil {
			sum(one.price.currency, "paid").ledgers += m.paid + m.further()
			sum(one.price.currency, "refunded").ledgers += m.returned + m.given
		}
	}
	for _, payments := range b.payments {
		for _, p := range payments {
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
	}
	for _, t := range b.report.Totals {
		sum(t.Currency, "paid").rep += t.Gross
		sum(t.Currency, "refunded").rep += t.Refunded
	}
	for _, r := range b.export {
		for column, kind := range map[string]string{"gross": "paid", "refunded": "refunded"} {
			amount, err := r.number(column)
			if err != nil {
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
