package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Grant asks for licenses that no order stands behind. Its members have been
// checked.
type Grant struct {
	ProductID  string
	Quantity   int
	MaxDevices *int      // nil: the product's
	ExpiresAt  time.Time // zero: as the product's validity says
	Metadata   string    // of each license: a compact JSON object, or empty
	By         licensing.Actor
	Once       *node.Once // nil: the request came without an Idempotency-Key

	// Stale is why the request can't be made any more, such as that ExpiresAt has
	// passed; nil: it can. One that was made while it could is answered all the same.
	Stale error
}

// Grant issues licenses without an order, a bounded number in each
// transaction. If it fails after some were stored, the answer is
// ErrOutcomeUnknown.
//
// With in.Once that is mended by asking again: each transaction also stores how
// far the grant has come, so that the same request goes on from there. Once it
// is complete, the same request answers the licenses as they are now, and
// replayed is true.
func (l *Licenses) Grant(ctx context.Context, owner licensing.Owner, in Grant) (granted []store.LicenseView, replayed bool, err error) {
	return idempotent(ctx, l.core, owner, in.Once, in.Stale, func(_ node.Place, claim *node.Claim) (granted []store.LicenseView, replayed bool, err error) {
		product, along, err := l.productToSell(ctx, owner, in.ProductID, claim)
		if err != nil {
			return nil, claim.Replayed(), err
		}
		g := &granting{Licenses: l, owner: owner, in: in, claim: claim, along: along}
		switch {
		case claim.Earlier != nil:
			g.progress, g.since = *claim.Earlier.Grant, claim.Earlier.CreatedAt
			replayed = g.progress.Done == g.progress.Quantity
		case product == nil:
			return nil, false, licensing.ErrProductNotFound
		default:
			if err := g.plan(product.Terms); err != nil {
				return nil, false, err
			}
		}
		if err := g.run(ctx); err != nil {
			return nil, false, err
		}
		granted, err = g.licenses(ctx)
		if err != nil {
			return nil, false, err
		}
		return granted, replayed, nil
	})
}

// granting is a grant on its way.
type granting struct {
	*Licenses
	owner licensing.Owner
	in    Grant
	claim *node.Claim
	along []store.Write // makes the product, where there is none yet

	progress licensing.GrantProgress
	since    time.Time // when the claim was made; zero: not yet
	made     []licensing.License
}

// plan starts a grant from the beginning.
func (g *granting) plan(terms licensing.Terms) error {
	g.progress = licensing.GrantProgress{Terms: terms, Quantity: g.in.Quantity}
	if _, err := io.ReadFull(g.cfg.Entropy, g.progress.Seed[:]); err != nil {
		return fmt.Errorf("make a seed for license keys: %w", err)
	}
	return nil
}

// run stores what is missing, batch by batch.
func (g *granting) run(ctx context.Context) error {
	for lost := 0; g.progress.Done < g.progress.Quantity; {
		err := g.batch(ctx)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, store.ErrClaimTaken):
			return g.failed(err)
		}
		// Another one has made the product, or works on the same grant.
		if lost++; lost > claimTries+g.progress.Quantity/store.MaxNewLicenses {
			return g.failed(licensing.ErrUnavailable)
		}
		if err := g.catchUp(ctx); err != nil {
			return g.failed(err)
		}
	}
	return nil
}

// batch stores the next licenses and how far the grant has come with them.
func (g *granting) batch(ctx context.Context) error {
	next := g.progress
	next.Done = min(next.Done+store.MaxNewLicenses, next.Quantity)
	var batch []licensing.License
	var writes []store.Write
	for i := g.progress.Done; i < next.Done; i++ {
		l := g.license(i)
		writes = append(writes, store.Write{
			Ref:    licensing.LicenseRef(l.Key),
			Record: licensing.NewLicense(l, newMetadata(g.in.Metadata), g.in.By),
		})
		batch = append(batch, *l)
	}
	if g.since.IsZero() {
		g.since = g.engine.Now()
	}
	g.claim.Effect = licensing.Claim{Grant: &next, CreatedAt: g.since}
	if err := g.commitWithProduct(ctx, g.claim, g.along, writes...); err != nil {
		return err
	}
	g.progress, g.along = next, nil
	g.made = append(g.made, batch...)
	return g.catchUpToken(ctx)
}

// license makes license number i of the grant.
func (g *granting) license(i int) *licensing.License {
	key := g.progress.Key(g.cfg.KeyCheck, store.Cell, i)
	l := g.progress.Terms.Issue(key, g.owner, g.in.ProductID, "", g.engine.Now())
	if g.in.MaxDevices != nil {
		l.MaxDevices = *g.in.MaxDevices
	}
	if !g.in.ExpiresAt.IsZero() {
		l.ExpiresAt, l.Validity = g.in.ExpiresAt, licensing.Period{}
	}
	return l
}

// newMetadata is the metadata of a new license, nil where it has none.
func newMetadata(object string) *licensing.Metadata {
	if object == "" {
		return nil
	}
	return &licensing.Metadata{Object: object, Changed: true}
}

// catchUpToken reads the revision of the claim that the last batch wrote, for
// the next one to swap on.
func (g *granting) catchUpToken(ctx context.Context) error {
	if g.in.Once == nil || g.progress.Done == g.progress.Quantity {
		return nil
	}
	return g.catchUp(ctx)
}

// catchUp reads how things stand after a lost swap.
func (g *granting) catchUp(ctx context.Context) error {
	_, along, err := g.productToSell(ctx, g.owner, g.in.ProductID, g.claim)
	if err != nil {
		return err
	}
	if earlier := g.claim.Earlier; earlier != nil {
		if earlier.Grant.Seed != g.progress.Seed {
			g.made = nil // the grant is another request's; all of it is read at the end
		}
		g.progress, g.since = *earlier.Grant, earlier.CreatedAt
	}
	g.along = along
	return nil
}

// failed is the error of a grant that is not complete. What is stored stays.
func (g *granting) failed(err error) error {
	if g.progress.Done == 0 || licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown {
		return err
	}
	return licensing.ErrOutcomeUnknown
}

// licenses answers all licenses of the grant: as they were made, if all were
// made just now, else as they are.
func (g *granting) licenses(ctx context.Context) ([]store.LicenseView, error) {
	views := make([]store.LicenseView, g.progress.Quantity)
	if len(g.made) == g.progress.Quantity {
		for i := range views {
			views[i] = store.LicenseView{License: g.made[i], Metadata: g.in.Metadata}
		}
		return views, nil
	}
	for from := 0; from < len(views); from += store.MaxReadLicenses {
		page := views[from:min(from+store.MaxReadLicenses, len(views))]
		if err := g.read(ctx, from, page); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// read reads the licenses of the grant from one on. They are stored, so that
// nothing may be answered that says otherwise.
func (g *granting) read(ctx context.Context, from int, into []store.LicenseView) error {
	keys := make([]licensing.LicenseKey, len(into))
	for i := range keys {
		keys[i] = g.progress.Key(g.cfg.KeyCheck, store.Cell, from+i)
	}
	views, err := g.cfg.Queries.ReadLicenses(ctx, keys, store.ViewDevices)
	if licensing.NotExecuted(err) {
		return g.failed(err)
	}
	if err != nil {
		return err
	}
	for i, view := range views {
		if err := visible(view, g.owner, keys[i]); err != nil {
			return err
		}
		into[i] = *view
	}
	return nil
}
