package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Grant asks for licenses without an order. The caller has validated the fields.
type Grant struct {
	ProductID  string
	Quantity   int
	MaxDevices *int      // nil: the product's limit
	ExpiresAt  time.Time // zero: the product's validity applies
	Metadata   string    // of each license: a compact JSON object, or empty
	// Entitlements of each license, besides those of the product.
	Entitlements licensing.Entitlements
	// ExternalKey is the key of the license at another service; see licensing.ParseExternalKey. It requires a Quantity
	// of 1. Empty: there is none.
	ExternalKey string
	Customer    licensing.Customer // of each license
	By          licensing.Actor
	Once        *node.Once // nil: the request came without an Idempotency-Key

	// Stale is the error if the request can no longer be made, such as that ExpiresAt has passed; nil
	// if it can. A request that was made in time is still answered when it is repeated.
	Stale error
}

// Grant creates licenses without an order, up to MaxNewLicenses in each transaction. If Grant fails
// after it has stored some of them, it returns ErrOutcomeUnknown.
//
// With in.Once, the caller can repeat the request: each transaction also stores the progress of the
// grant, and the same request continues from there. When the grant is complete, the same request
// returns the licenses as they are now, and replayed is true.
func (l *Licenses) Grant(
	ctx context.Context, owner licensing.Owner, in Grant,
) (granted []store.LicenseView, replayed bool, err error) {
	run := func(_ node.Place, claim *node.Claim) (granted []store.LicenseView, replayed bool, err error) {
		product, newProduct, err := l.loadProduct(ctx, owner, in.ProductID, claim)
		if err != nil {
			return nil, claim.Replayed(), err
		}
		g := &grantRun{Licenses: l, owner: owner, in: in, claim: claim, newProduct: newProduct}
		switch {
		case claim.Earlier != nil:
			g.progress, g.claimedAt = *claim.Earlier.Grant, claim.Earlier.CreatedAt
			replayed = g.progress.Done == g.progress.Quantity
		case product == nil:
			return nil, false, licensing.ErrProductNotFound
		default:
			if err := g.start(ctx, product); err != nil {
				return nil, false, err
			}
		}
		if err := g.run(ctx); err != nil {
			return nil, false, g.failed(err)
		}
		granted, err = g.licenses(ctx)
		if err == nil {
			err = l.showEntitled(ctx, owner, pointers(granted)...)
		}
		switch {
		case licensing.NotExecuted(err):
			return nil, false, g.failed(err)
		case err != nil:
			return nil, false, err
		}
		return granted, replayed, nil
	}
	return idempotent(ctx, l.core, owner, in.Once, cmp.Or(in.Stale, l.budgets.admit(ctx, owner)), run)
}

// grantRun is the state of a grant while one request works on it.
type grantRun struct {
	*Licenses
	owner      licensing.Owner
	in         Grant
	claim      *node.Claim
	newProduct []store.Write       // creates the product; empty if it exists
	newAlias   licensing.AliasName // of the external key; zero if there is none
	sealedKey  string              // the external key, as the store keeps it

	entitlements licensing.Entitlements // of each license

	progress  licensing.GrantProgress
	claimedAt time.Time           // when the claim was stored; zero: not yet
	created   []licensing.License // by this request
}

// maxShownEntitlements bounds the entitlements of the product in the answer to a grant, in bytes.
const maxShownEntitlements = 4 << 20

// start begins a new grant.
func (g *grantRun) start(ctx context.Context, product *licensing.Product) error {
	if size := len(product.Entitlements); size*g.in.Quantity > maxShownEntitlements {
		return licensing.InvalidField("quantity", fmt.Sprintf(
			"must be at most %d: the answer shows the entitlements of the product for each license",
			maxShownEntitlements/size))
	}
	if g.in.MaxDevices != nil {
		if err := product.Terms.Lease.CheckDevices(*g.in.MaxDevices); err != nil {
			return err
		}
	}
	g.progress = licensing.GrantProgress{Terms: product.Terms, Quantity: g.in.Quantity}
	if _, err := io.ReadFull(g.cfg.Entropy, g.progress.Seed[:]); err != nil {
		return fmt.Errorf("make a seed for license keys: %w", err)
	}
	return g.takeExternalKey(ctx)
}

// takeExternalKey prepares the alias of the external key, or fails with ErrExternalKeyInUse.
func (g *grantRun) takeExternalKey(ctx context.Context) error {
	if g.in.ExternalKey == "" {
		return nil
	}
	id := g.cfg.LicenseKeys.GrantKey(&g.progress, g.owner, 0).ID()
	var err error
	g.newAlias, g.sealedKey, err = g.aliases.newAlias(ctx, g.owner, id, g.in.ExternalKey)
	return err
}

// run stores the missing licenses, batch by batch. A conflict means that another request has created the product, or
// works on the same grant and has stored the batch.
func (g *grantRun) run(ctx context.Context) error {
	return retryConflicts(1+maxClaimTries+g.progress.Quantity/store.MaxNewLicenses, func() (err error) {
		for err == nil && g.progress.Done < g.progress.Quantity {
			err = g.batch(ctx)
		}
		if errors.Is(err, store.ErrClaimTaken) {
			return cmp.Or(g.reload(ctx), err)
		}
		return err
	})
}

// batch stores the next licenses and the new progress of the grant.
func (g *grantRun) batch(ctx context.Context) error {
	if g.claimedAt.IsZero() {
		g.claimedAt = g.engine.Now()
	}
	var err error
	if g.entitlements, err = licensing.NewOwnEntitlements(g.in.Entitlements, g.claimedAt); err != nil {
		return err
	}
	next := g.progress
	next.Done = min(next.Done+store.MaxNewLicenses, next.Quantity)
	var batch []licensing.License
	var writes []store.Write
	for i := g.progress.Done; i < next.Done; i++ {
		l := g.license(i)
		record := licensing.NewLicense(l, g.newMetadata(), g.in.By)
		if g.newAlias != (licensing.AliasName{}) {
			record.NewAliases = []licensing.AliasName{g.newAlias}
		}
		writes = append(writes, store.Write{Ref: licensing.LicenseRef(l.Key), Record: record})
		batch = append(batch, *l)
	}
	g.claim.Effect = licensing.Claim{Grant: &next, CreatedAt: g.claimedAt}
	if err := g.commit(ctx, writes); err != nil {
		return err
	}
	g.progress, g.newProduct = next, nil
	g.created = append(g.created, batch...)
	return g.reloadClaim(ctx)
}

// commit commits the writes of a batch along with the new product and the new alias. Requests that bring the same
// external key write the same alias, so their Commits take turns.
func (g *grantRun) commit(ctx context.Context, writes []store.Write) error {
	if g.newAlias == (licensing.AliasName{}) {
		return g.commitWithProduct(ctx, g.claim, g.newProduct, writes...)
	}
	commit := func(ctx context.Context) (licensing.Result, error) {
		return licensing.Result{}, g.commitWithProduct(ctx, g.claim, g.newProduct, writes...)
	}
	_, err := g.engine.WithRecordLock(ctx, licensing.AliasRef(g.newAlias), commit)
	return err
}

// license returns a new license, the one with index i of the grant.
func (g *grantRun) license(i int) *licensing.License {
	key := g.cfg.LicenseKeys.GrantKey(&g.progress, g.owner, i)
	l := g.progress.Terms.Issue(key, g.owner, g.in.ProductID, "", g.engine.Now())
	if g.in.MaxDevices != nil {
		l.MaxDevices = *g.in.MaxDevices
	}
	if !g.in.ExpiresAt.IsZero() {
		l.ExpiresAt, l.Validity = g.in.ExpiresAt, licensing.Period{}
	}
	l.OwnEntitlements = g.entitlements.Version()
	return l
}

// metadata returns the metadata of a license of the grant.
func (g *grantRun) metadata() licensing.Metadata {
	return licensing.Metadata{Object: g.in.Metadata, ExternalKey: g.sealedKey, Entitlements: g.entitlements,
		Customer: g.in.Customer}
}

// newMetadata returns the metadata of a new license; nil if there is none.
func (g *grantRun) newMetadata() *licensing.Metadata {
	m := g.metadata()
	if m == (licensing.Metadata{}) {
		return nil
	}
	m.Changed = true
	return &m
}

// reloadClaim reads the revision of the claim that the last batch wrote. The next batch compares it.
func (g *grantRun) reloadClaim(ctx context.Context) error {
	if g.in.Once == nil || g.progress.Done == g.progress.Quantity {
		return nil
	}
	return g.reload(ctx)
}

// reload reads the claim and the product again.
func (g *grantRun) reload(ctx context.Context) error {
	_, newProduct, err := g.loadProduct(ctx, g.owner, g.in.ProductID, g.claim)
	if err != nil {
		return err
	}
	if earlier := g.claim.Earlier; earlier != nil {
		if earlier.Grant.Seed != g.progress.Seed {
			g.created = nil // another request began the grant: read all licenses at the end
		}
		g.progress, g.claimedAt = *earlier.Grant, earlier.CreatedAt
	}
	g.newProduct = newProduct
	if g.progress.Done == 0 {
		return g.takeExternalKey(ctx)
	}
	return nil
}

// failed returns the error of an incomplete grant. The stored licenses remain.
func (g *grantRun) failed(err error) error {
	if g.progress.Done == 0 || licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown {
		return err
	}
	return licensing.ErrOutcomeUnknown
}

// licenses returns all licenses of the grant: as created if this request created all of them, else as
// they are now.
func (g *grantRun) licenses(ctx context.Context) ([]store.LicenseView, error) {
	views := make([]store.LicenseView, g.progress.Quantity)
	if len(g.created) == g.progress.Quantity {
		for i := range views {
			views[i] = store.LicenseView{License: g.created[i], Metadata: g.metadata()}
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

// maxWithDevices is the greatest number of licenses of a grant that a repeated grant returns with their
// first devices. The owner reads the devices of a larger grant by license.
const maxWithDevices = 16

// read reads licenses of the grant, the first one with index from.
func (g *grantRun) read(ctx context.Context, from int, into []store.LicenseView) error {
	keys := make([]licensing.LicenseKey, len(into))
	for i := range keys {
		keys[i] = g.cfg.LicenseKeys.GrantKey(&g.progress, g.owner, from+i)
	}
	views, err := g.cfg.Queries.ReadLicenses(ctx, keys, 0)
	if err != nil {
		return err
	}
	for i, view := range views {
		if err := visible(view, g.owner, keys[i]); err != nil {
			return err
		}
		if g.progress.Quantity > maxWithDevices && view.License.CurrentDevices > 0 {
			view.Devices, view.Next = nil, &store.DeviceCursor{}
		}
		into[i] = *view
	}
	return nil
}
