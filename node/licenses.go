package node

import (
	"context"
	"errors"
	"time"

	"licet"
)

// Activate binds a device to a license, or sees a bound one again.
func (n *Node) Activate(ctx context.Context, cmd licet.Activate) (licet.Result, error) {
	cmd.SeenStep = n.cfg.SeenStep
	return n.Do(ctx, licet.LicenseRef(cmd.Key), cmd)
}

// RemoveDevice frees a device's slot.
func (n *Node) RemoveDevice(ctx context.Context, cmd licet.RemoveDevice) (licet.Result, error) {
	return n.Do(ctx, licet.LicenseRef(cmd.Key), cmd)
}

// License looks a license up with a page of its devices, linearizably.
func (n *Node) License(ctx context.Context, owner licet.Owner, key licet.LicenseKey, page DevicePage) (*LicenseView, error) {
	view, err := n.cfg.Store.ReadLicense(ctx, key, page)
	if err != nil {
		return nil, err
	}
	if view == nil || view.License.Key != key || !view.License.Owner.Matches(owner) {
		return nil, licet.ErrLicenseNotFound
	}
	return view, nil
}

// Grant asks for licenses that no order stands behind. Its members have been
// checked.
type Grant struct {
	ProductID  string
	Quantity   int
	MaxDevices *int      // nil: the product's
	ExpiresAt  time.Time // zero: as the product's validity says
	Metadata   string    // of each license: a compact JSON object, or empty
}

// Grant issues licenses without an order, a bounded number in each
// transaction. If it fails after some were stored, the answer is
// ErrOutcomeUnknown.
func (n *Node) Grant(ctx context.Context, owner licet.Owner, in Grant) ([]licet.License, error) {
	if err := n.enter(); err != nil {
		return nil, err
	}
	defer n.work.Done()
	granted := make([]licet.License, 0, in.Quantity)
	for tries := 0; len(granted) < in.Quantity; tries++ {
		if tries > in.Quantity/MaxNewLicenses+createTries {
			return nil, partly(granted, licet.ErrUnavailable)
		}
		product, writes, err := n.product(ctx, owner, in.ProductID)
		if err != nil {
			return nil, partly(granted, err)
		}
		batch, err := n.newLicenses(owner, in, product.Terms, min(in.Quantity-len(granted), MaxNewLicenses))
		if err != nil {
			return nil, partly(granted, err)
		}
		for _, l := range batch {
			writes = append(writes, Write{
				Ref:      licet.LicenseRef(l.Key),
				Record:   licet.Record{License: l, Changed: true},
				Metadata: in.Metadata,
			})
		}
		outcome, err := n.cfg.Store.Commit(ctx, Change{Writes: writes})
		if err != nil {
			return nil, partly(granted, err)
		}
		if !outcome.Landed {
			continue // the product was made by another one meanwhile
		}
		for _, l := range batch {
			granted = append(granted, *l)
		}
	}
	return granted, nil
}

func (n *Node) newLicenses(owner licet.Owner, in Grant, terms licet.Terms, count int) ([]*licet.License, error) {
	now := n.Now()
	licenses := make([]*licet.License, count)
	for i := range licenses {
		key, err := n.mint(terms)
		if err != nil {
			return nil, err
		}
		l := terms.Issue(key, owner, in.ProductID, "", now)
		if in.MaxDevices != nil {
			l.MaxDevices = *in.MaxDevices
		}
		if !in.ExpiresAt.IsZero() {
			l.ExpiresAt, l.Validity = in.ExpiresAt, licet.Period{}
		}
		licenses[i] = l
	}
	return licenses, nil
}

// partly is the error of a grant that has stored some of its licenses already.
func partly(granted []licet.License, err error) error {
	if len(granted) == 0 || errors.Is(err, licet.ErrOutcomeUnknown) {
		return err
	}
	return licet.ErrOutcomeUnknown
}
