package service

import (
	"context"
	"fmt"
	"io"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node"
	"licet/node/store"
)

// Licenses offers the use cases of licenses and their devices.
type Licenses struct {
	*core
	aliases *Aliases
}

// Activate binds a device to a license. If the device is bound already, Activate updates when it was
// last seen.
func (l *Licenses) Activate(ctx context.Context, cmd licensing.Activate) (licensing.Result, error) {
	cmd.SeenStep = l.cfg.SeenStep
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// RemoveDevice unbinds a device at the shop's request.
func (l *Licenses) RemoveDevice(ctx context.Context, cmd licensing.RemoveDevice) (licensing.Result, error) {
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// DeactivateDevice unbinds a device at its user's request.
func (l *Licenses) DeactivateDevice(ctx context.Context, cmd licensing.DeactivateDevice) (licensing.Result, error) {
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// ValidateLicense reports, linearizably, whether a device may use a license.
func (l *Licenses) ValidateLicense(ctx context.Context, cmd licensing.ValidateLicense) (licensing.Result, error) {
	cmd.SeenStep = l.cfg.SeenStep
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// LicenseChange asks for a change of a license by its owner.
type LicenseChange struct {
	Key     licensing.LicenseKey
	Command licensing.Command // its target is Key and the owner
	Once    *node.Once        // nil: the request came without an Idempotency-Key

	// Stale is the error if the request can no longer be made; see [Grant].
	Stale error
}

// ChangeLicense runs a command on a license and returns the license after it. If the license can't be
// read afterward, ChangeLicense returns ErrOutcomeUnknown, although the command has run.
//
// With in.Once, repeating the request returns the license as it is now, or the refusal of the first
// request, and replayed is true.
func (l *Licenses) ChangeLicense(
	ctx context.Context, owner licensing.Owner, in LicenseChange,
) (view *store.LicenseView, replayed bool, err error) {
	unread := licensing.Record{License: &licensing.License{Key: in.Key, Owner: owner}}
	if licensing.GrowthOf(in.Command, &unread, l.engine.Now()).Budgeted() {
		if err := l.budgets.learn(ctx, owner); err != nil {
			return nil, false, err
		}
	}
	run := func(place node.Place, claim *node.Claim) (view *store.LicenseView, replayed bool, err error) {
		claim.Effect.LicenseKey = in.Key
		if _, err := place.DoOnce(ctx, licensing.LicenseRef(in.Key), in.Command, claim); err != nil {
			return nil, claim.Replayed(), err
		}
		view, err = l.readLicense(ctx, owner, in.Key, store.DevicePage{Limit: store.ViewDevices})
		switch {
		case err != nil && claim.Replayed():
			return nil, false, err // the failed read is not the outcome of the first request
		case err != nil:
			// %v and not %w: the cause may say that nothing was changed.
			return nil, false, fmt.Errorf("%w: read the license that was changed: %v", licensing.ErrOutcomeUnknown, err)
		}
		return view, claim.Replayed(), visible(view, owner, in.Key)
	}
	view, replayed, err = idempotent(ctx, l.core, owner, in.Once, in.Stale, run)
	if _, revokes := in.Command.(licensing.RevokeLicense); revokes && err == nil && view.License.OrderNo != "" {
		// If this fails, or if the node dies before, a sweep finds the revoked license before the next payment is due.
		_, _ = l.engine.Do(ctx, licensing.OrderRef(owner, view.License.OrderNo), licensing.EndSubscription{})
	}
	return view, replayed, err
}

// Reissue asks for a new key of a license. The caller has validated the fields.
type Reissue struct {
	Target  licensing.Target
	Overlap time.Duration // how long bound devices may still use the earlier keys
	Reason  string
	Once    *node.Once // nil: the request came without an Idempotency-Key
}

// ReissueLicense gives a license a new key, and returns the license with it. See ChangeLicense for errors and
// repetitions.
func (l *Licenses) ReissueLicense(
	ctx context.Context, owner licensing.Owner, in Reissue,
) (view *store.LicenseView, replayed bool, err error) {
	var entropy [keyring.LicenseKeyEntropy]byte
	if _, err := io.ReadFull(l.cfg.Entropy, entropy[:]); err != nil {
		return nil, false, fmt.Errorf("make a license key: %w", err)
	}
	key := in.Target.Key
	return l.ChangeLicense(ctx, owner, LicenseChange{Key: key, Once: in.Once, Command: licensing.ReissueLicense{
		Target: in.Target, New: l.cfg.LicenseKeys.MintReissued("", owner, entropy), Overlap: in.Overlap,
		Reason: in.Reason,
	}})
}

// License returns a license with a page of its devices. The read is linearizable.
func (l *Licenses) License(
	ctx context.Context, owner licensing.Owner, key licensing.LicenseKey, page store.DevicePage,
) (view *store.LicenseView, err error) {
	return admitted(ctx, l.core, owner, func(node.Place) (view *store.LicenseView, err error) {
		view, err = l.readLicense(ctx, owner, key, page)
		if err != nil {
			return nil, err
		}
		if err := visible(view, owner, key); err != nil {
			return nil, err
		}
		return view, nil
	})
}

// smallPage is the number of devices up to which a page of devices costs about what a command costs.
const smallPage = 16

// readLicense reads a license with a page of its devices for an owner. A page of more than smallPage
// devices, of a license that has more, counts as a page of a list.
func (l *Licenses) readLicense(
	ctx context.Context, owner licensing.Owner, key licensing.LicenseKey, page store.DevicePage,
) (*store.LicenseView, error) {
	if page.Limit > smallPage {
		page.Enter = func() (leave func(), err error) {
			if err := l.lists.enter(ctx, owner); err != nil {
				return nil, err
			}
			return func() { l.lists.leave(owner) }, nil
		}
	}
	page.Owner = owner
	view, err := l.cfg.Queries.ReadLicense(ctx, key, page)
	if err != nil || visible(view, owner, key) != nil {
		return view, err
	}
	return view, l.showEntitled(ctx, owner, view)
}

// visible returns ErrLicenseNotFound if the view is not of the license with this key, or not of the
// owner.
func visible(view *store.LicenseView, owner licensing.Owner, key licensing.LicenseKey) error {
	if view == nil || !key.Names(view.License.Key) || !view.License.Owner.Matches(owner) {
		return licensing.ErrLicenseNotFound
	}
	return nil
}
