package history

import (
	"context"
	"fmt"
	"math"
	"time"

	"licet/licensing"
)

// prices is how often the product's entitlements change in a run.
const prices = 8

// price gives the product other entitlements again and again, while licenses are issued for it. Each has its own text.
func (r *run) price() {
	random := r.random("price")
	for n := range prices {
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		put := licensing.PutProduct{ID: "pro", Owner: r.owner, Terms: licensing.DefaultTerms(),
			Entitlements: licensing.Entitlements(fmt.Sprintf(`{"price":%d}`, n))}
		p := r.anyProcess(random)
		reach(r, p, patience, func(ctx context.Context) error {
			_, _, err := p.node.PutProduct(ctx, put)
			return err
		})
	}
}

// productAt is the version of the product's terms as one revision left it; 0: no entitlements.
type productAt struct {
	revision int64
	version  licensing.TermsVersion
}

// entitled reads what a license's metadata key contains as its own entitlements.
func entitled(note string) (licensing.Entitlements, error) {
	if note == "" {
		return "", nil
	}
	m, err := parse([]byte(note[1:]))
	return licensing.Entitlements(m.text(4)), err
}

// terms: a license has the terms that the product had at some moment between the first request to pay and the license's
// first revision, and keeps them; and a version that is named is stored. Its own entitlements are the entitlements that
// it names.
func (i *inspection) terms(t *timeline, key licensing.LicenseKey, states []*licenseAt) {
	first := states[0]
	for _, s := range states {
		if s.terms != first.terms && s.product != "rolled" {
			i.add("facts", "%s: had the terms %x, has %x: %s", key, first.terms, s.terms, s)
		}
		if s.own != s.entitlements.Version() {
			i.add("facts", "%s: names the entitlements %x, has %q: %s", key, s.own, s.entitlements, s)
		}
	}
	if stored := t.terms[first.terms]; first.terms != 0 && (stored == 0 || stored > first.revision) {
		i.add("facts", "%s: its terms %x are stored in revision %d: %s", key, first.terms, stored, first)
	}
	if first.order == "" || first.product != "pro" {
		return // made without a product, or by a request that may have been repeated
	}
	from := int64(math.MaxInt64)
	for _, d := range i.run.deeds {
		switch {
		case d.Order != first.order:
		case d.What == "create" && len(d.Keys) > 0:
			from = 0 // free: paid by the request that made it, which may have been repeated
		case d.What == "pay":
			from = min(from, d.Before)
		}
	}
	if from == math.MaxInt64 { // paid by the request that made it, and whose answer was lost
		from = 0
	}
	possible := first.terms == 0
	for _, p := range t.products {
		switch {
		case p.revision <= from:
			possible = p.version == first.terms
		case p.revision <= first.revision:
			possible = possible || p.version == first.terms
		}
	}
	if !possible {
		i.add("facts", "%s: has the terms %x, and the product had %v after revision %d: %s", key, first.terms,
			t.products, from, first)
	}
}
