package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"licet/client"
	"licet/loadtest/rig"
)

// lists are the lists of one account: of all records, by the zero filter, and of the records that other filters select.
type lists struct {
	orders   map[client.OrderFilter][]client.Order
	licenses map[client.LicenseFilter][]client.License
}

// readLists reads the lists of all accounts.
func readLists(ctx context.Context, accounts []*client.Client) ([]lists, error) {
	all := make([]lists, len(accounts))
	return all, rig.Each(ctx, len(accounts), preparers, func(ctx context.Context, i int) (err error) {
		all[i], err = listsOf(ctx, accounts[i])
		return err
	})
}

// sampled is for how many orders of an account the lists by their buyers and of their licenses are read.
const sampled = 5

// listsOf reads the lists of one account.
func listsOf(ctx context.Context, api *client.Client) (l lists, err error) {
	l = lists{map[client.OrderFilter][]client.Order{}, map[client.LicenseFilter][]client.License{}}
	read := func(orders client.OrderFilter, licenses client.LicenseFilter) {
		if err == nil {
			l.orders[orders], err = rig.Collect(api.Orders.All(ctx, orders))
		}
		if err == nil {
			l.licenses[licenses], err = rig.Collect(api.Licenses.All(ctx, licenses))
		}
	}
	read(client.OrderFilter{}, client.LicenseFilter{})
	read(client.OrderFilter{Status: "unpaid"}, client.LicenseFilter{Status: "not_activated"})
	read(client.OrderFilter{Status: "paid"}, client.LicenseFilter{Status: "activated"})
	orders := l.orders[client.OrderFilter{}]
	for _, o := range orders[:min(sampled, len(orders))] {
		buyer := strings.ToUpper(o.BuyerEmail) // lists find a buyer in any case
		read(client.OrderFilter{BuyerEmail: buyer}, client.LicenseFilter{BuyerEmail: buyer, OrderNo: o.OrderNo})
		read(client.OrderFilter{ProductID: o.ProductID}, client.LicenseFilter{ProductID: o.ProductID})
	}
	return l, err
}

// compareLists compares the lists of all accounts with the records that were read one by one, and the list of each
// filter with the records that match the filter.
func (p *proof) compareLists(j *journal, st *stored) {
	orders, licenses := map[string]string{}, map[string]string{} // by name: the records that were listed
	buyers := map[string]string{}                                // by order
	for _, l := range st.lists {
		for _, o := range l.orders[client.OrderFilter{}] {
			buyers[o.OrderNo] = o.BuyerEmail
		}
		compareList(p, l.orders, orders, orderText, func(f client.OrderFilter, o client.Order) bool {
			return matches(f.Status, o.Status) && matches(f.ProductID, o.ProductID) &&
				matches(f.BuyerEmail, o.BuyerEmail)
		})
		compareList(p, l.licenses, licenses, licenseText, func(f client.LicenseFilter, l client.License) bool {
			return matches(f.Status, l.Status) && matches(f.ProductID, l.ProductID) && matches(f.OrderNo, l.OrderNo) &&
				matches(f.BuyerEmail, buyers[l.OrderNo])
		})
	}
	for _, o := range st.orders {
		compareListed(p, orders, orderText, *o)
	}
	for _, l := range st.licenses {
		compareListed(p, licenses, licenseText, l.License)
	}
	p.Facts = append(p.Facts, fact{What: "orders and licenses in lists", Uncertain: j.unanswered(),
		Acknowledged: len(st.orders) + len(st.licenses), Stored: len(orders) + len(licenses)})
}

// matches reports whether a value has what a filter wants, in any case.
func matches(wanted, value string) bool { return wanted == "" || strings.EqualFold(wanted, value) }

// compareList adds the records of an account to the listed records, and compares the list of each filter with them.
func compareList[F comparable, T any](
	p *proof, by map[F][]T, all map[string]string, text func(T) (name, text string), match func(F, T) bool,
) {
	var none F
	for _, record := range by[none] {
		name, shown := text(record)
		if all[name] != "" {
			p.Problem("%s is listed twice", name)
		}
		all[name] = shown
	}
	for f, got := range by {
		var want, have []string
		for _, record := range by[none] {
			if _, shown := text(record); match(f, record) {
				want = append(want, shown)
			}
		}
		for _, record := range got {
			_, shown := text(record)
			have = append(have, shown)
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(want, have) {
			p.Problem("the list by %+v has %d records, and %d match: %.1000v, not %.1000v",
				f, len(have), len(want), have, want)
		}
	}
}

// compareListed compares a record with the record of the same name in the lists.
func compareListed[T any](p *proof, all map[string]string, text func(T) (name, text string), record T) {
	switch name, shown := text(record); all[name] {
	case shown:
	case "":
		p.Problem("%s is in no list", name)
	default:
		p.Problem("%s is listed as %s, and shown as %s", name, all[name], shown)
	}
}

// orderText returns an order without the members that lists leave out.
func orderText(o client.Order) (name, text string) {
	o.LicenseKeys = nil
	return "order " + o.OrderNo, jsonOf(o)
}

// licenseText returns a license without the members that lists leave out.
func licenseText(l client.License) (name, text string) {
	l.Devices, l.DevicesNextCursor = nil, ""
	return "license " + l.LicenseKey, jsonOf(l)
}

func jsonOf(record any) string {
	text, err := json.Marshal(record)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
