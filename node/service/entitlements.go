package service

import (
	"context"
	"fmt"

	"github.com/maypok86/otter/v2"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// rememberedEntitlements bounds what a node remembers of entitlements, in bytes.
const rememberedEntitlements = 16 << 20

// entitlementsName names the entitlements of a product's terms, or a license's own.
type entitlementsName struct {
	owner   licensing.Owner
	version licensing.TermsVersion
}

// entitlementsCache has entitlements by name. A version is the hash of a text, so what a node remembers of a version
// stays true.
type entitlementsCache = cache[entitlementsName, licensing.Entitled]

func newEntitlementsCache() entitlementsCache {
	return otter.Must(&otter.Options[entitlementsName, licensing.Entitled]{
		MaximumWeight: rememberedEntitlements,
		Weigher:       func(_ entitlementsName, e licensing.Entitled) uint32 { return uint32(e.Size()) },
	})
}

// Entitled returns the entitlements of a license. The node must have served a command of the license for the same
// request. Entitled makes no request to the store for entitlements that the node remembers. If the license's own
// entitlements have changed since, Entitled returns the later ones.
func (l *Licenses) Entitled(ctx context.Context, of *licensing.License) (licensing.Entitled, error) {
	if of.Terms == 0 && of.OwnEntitlements == 0 {
		return nil, nil
	}
	product, productKnown := l.recallEntitled(of.Owner, of.Terms)
	own, ownKnown := l.recallEntitled(of.Owner, of.OwnEntitlements)
	if productKnown && ownKnown {
		return own.Over(product), nil
	}
	return l.readEntitled(ctx, *of)
}

// RemembersEntitled reports whether Entitled, called a moment ago, has returned the entitlements of the license, and
// not later ones.
func (l *Licenses) RemembersEntitled(of *licensing.License) bool {
	_, known := l.recallEntitled(of.Owner, of.OwnEntitlements)
	return known
}

// readEntitled takes a copy, so that the argument of Entitled stays on the stack.
func (l *Licenses) readEntitled(ctx context.Context, of licensing.License) (licensing.Entitled, error) {
	return afterServed(l.core, of.Owner, func(node.Place) (licensing.Entitled, error) {
		products, err := l.ofTerms(ctx, of.Owner, of.Terms)
		if err != nil {
			return nil, err
		}
		own, err := l.readOwn(ctx, &of)
		return own.Over(products[of.Terms]), err
	})
}

func (c *core) recallEntitled(
	owner licensing.Owner, version licensing.TermsVersion,
) (known licensing.Entitled, ok bool) {
	if version == 0 {
		return nil, true
	}
	return c.entitlements.GetIfPresent(entitlementsName{owner, version})
}

func (c *core) readOwn(ctx context.Context, l *licensing.License) (licensing.Entitled, error) {
	if known, ok := c.recallEntitled(l.Owner, l.OwnEntitlements); ok {
		return known, nil
	}
	loaded, err := c.cfg.Records.Load(ctx, store.Want{Ref: licensing.LicenseRef(l.Key), Metadata: true})
	if err != nil || loaded[0].Record.Metadata == nil {
		return nil, err
	}
	return c.parseEntitled(l.Owner, loaded[0].Record.Metadata.Entitlements)
}

// ofTerms returns the entitlements of versions of terms of an owner.
func (c *core) ofTerms(
	ctx context.Context, owner licensing.Owner, versions ...licensing.TermsVersion,
) (map[licensing.TermsVersion]licensing.Entitled, error) {
	of := make(map[licensing.TermsVersion]licensing.Entitled)
	var unknown []store.Want
	for _, v := range versions {
		known, ok := c.recallEntitled(owner, v)
		if _, twice := of[v]; !twice && !ok {
			unknown = append(unknown, store.Want{Ref: licensing.TermsRef(owner, v)})
		}
		of[v] = known
	}
	// A version that is missing or unreadable must not hold up the licenses of other versions: licet store verify
	// reports it.
	err := eachReadable(c, unknown, func(some []store.Want) error {
		loaded, err := c.cfg.Records.Load(ctx, some...)
		for i := range loaded {
			terms := loaded[i].Record.Terms
			if terms == nil {
				continue
			}
			if of[terms.Entitlements.Version()], err = c.parseEntitled(owner, terms.Entitlements); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return of, nil
}

// parseEntitled parses entitlements that the store has returned, and remembers them.
func (c *core) parseEntitled(owner licensing.Owner, text licensing.Entitlements) (licensing.Entitled, error) {
	name := entitlementsName{owner, text.Version()}
	if known, ok := c.recallEntitled(owner, name.version); ok {
		return known, nil
	}
	parsed, err := text.Parse()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrInternal, err)
	}
	c.entitlements.Set(name, parsed)
	return parsed, nil
}

// showEntitled sets the entitlements of views of an owner's licenses. A nil view is of no license.
func (c *core) showEntitled(ctx context.Context, owner licensing.Owner, views ...*store.LicenseView) error {
	versions := make([]licensing.TermsVersion, 0, len(views))
	for _, v := range views {
		if v != nil {
			versions = append(versions, v.License.Terms)
		}
	}
	products, err := c.ofTerms(ctx, owner, versions...)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v == nil {
			continue
		}
		own, err := c.parseEntitled(owner, v.Metadata.Entitlements)
		if err != nil {
			return err
		}
		v.Entitled = own.Over(products[v.License.Terms])
	}
	return nil
}
