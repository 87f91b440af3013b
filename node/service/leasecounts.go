package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"licet/licensing"
	"licet/metrics"
	"licet/node/store"
)

const (
	// leaseCountRest is how many times as long as a count of leases took the node pauses before the next.
	leaseCountRest = 20
	// maxLeaseSeries bounds the products that have a series of their own.
	maxLeaseSeries = 1000
)

// LeaseCounts counts the leases in use.
type LeaseCounts struct {
	*core
	notBefore time.Time // the next count; only CountLeases uses it
}

// leasedProduct is a product with leases.
type leasedProduct struct {
	owner licensing.Owner
	id    string
}

// CountLeases counts the leases in use of each product, in the slots of this node, unless the latest count took so long
// that the node rests. One goroutine at a time may call CountLeases.
func (c *LeaseCounts) CountLeases(ctx context.Context) error {
	began := c.cfg.Clock()
	if began.Before(c.notBefore) {
		return nil
	}
	defer func() {
		ended := c.cfg.Clock()
		c.notBefore = ended.Add(leaseCountRest * ended.Sub(began))
	}()
	// A slot where no lease is the first work of a license mostly has no leases. Its licenses are not read: they may be
	// very many.
	slots, err := c.cfg.Queries.DueSlots(ctx, licensing.DueLeases, store.DueSpan{})
	if err != nil {
		return err
	}
	counts := make(map[leasedProduct]int)
	// Always the same turn: if slots changed hands, two nodes would count them, or none, until both have counted again.
	for _, slot := range c.ownSlots(slots, time.Unix(0, 0)) {
		err := c.cfg.Queries.EachLeased(ctx, slot, began, func(l *licensing.License) {
			counts[leasedProduct{l.Owner, l.ProductID}] += l.CurrentDevices
		})
		if err != nil {
			return err
		}
	}
	c.cfg.Metrics.LeasesInUse.Replace(leaseSeries(counts))
	return nil
}

// leaseSeries returns the series of a count. Each owner has a series for its product with the most leases, then each
// for its second, and so on, up to maxLeaseSeries. All other products are one series without labels.
func leaseSeries(counts map[leasedProduct]int) []metrics.Series {
	products := slices.SortedFunc(maps.Keys(counts), func(a, b leasedProduct) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.id, b.id))
	})
	ranks := make(map[leasedProduct]int, len(products))
	of := make(map[licensing.Owner]int)
	for _, p := range products {
		ranks[p] = of[p.owner]
		of[p.owner]++
	}
	slices.SortStableFunc(products, func(a, b leasedProduct) int { return cmp.Compare(ranks[a], ranks[b]) })
	var series []metrics.Series
	for _, p := range products[:min(len(products), maxLeaseSeries)] {
		series = append(series, metrics.Series{
			Labels: []string{p.owner.AccountID, string(p.owner.Mode), p.id}, Value: float64(counts[p])})
	}
	if others := products[len(series):]; len(others) > 0 {
		rest := metrics.Series{Labels: []string{"", "", ""}}
		for _, p := range others {
			rest.Value += float64(counts[p])
		}
		series = append(series, rest)
	}
	return series
}
