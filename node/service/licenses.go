package service

import (
	"context"
	"fmt"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Licenses are what shops and devices do with licenses.
type Licenses struct{ *core }

// Activate binds a device to a license, or sees a bound one again.
func (l *Licenses) Activate(ctx context.Context, cmd licensing.Activate) (licensing.Result, error) {
	cmd.SeenStep = l.cfg.SeenStep
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// RemoveDevice frees a device's slot.
func (l *Licenses) RemoveDevice(ctx context.Context, cmd licensing.RemoveDevice) (licensing.Result, error) {
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// DeactivateDevice frees a device's slot on its user's wish.
func (l *Licenses) DeactivateDevice(ctx context.Context, cmd licensing.DeactivateDevice) (licensing.Result, error) {
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// ValidateLicense tells whether a device may use a license, linearizably.
func (l *Licenses) ValidateLicense(ctx context.Context, cmd licensing.ValidateLicense) (licensing.Result, error) {
	cmd.SeenStep = l.cfg.SeenStep
	return l.engine.Do(ctx, licensing.LicenseRef(cmd.Key), cmd)
}

// LicenseChange asks for a change of a license by its owner.
type LicenseChange struct {
	Key     licensing.LicenseKey
	Command licensing.Command // whose target is the key and the owner
	Once    *node.Once        // nil: the request came without an Idempotency-Key

	// Stale is why the request can't be made any more; see Grant.
	Stale error
}

// ChangeLicense runs a command on a license and answers the license as it is
// then. If it can't be read any more, the answer is ErrOutcomeUnknown, although
// the command was run.
//
// With in.Once that is done once: the same request again answers the license as
// it is now, or the refusal of the first time, and replayed is true.
func (l *Licenses) ChangeLicense(ctx context.Context, owner licensing.Owner, in LicenseChange) (view *store.LicenseView, replayed bool, err error) {
	return idempotent(ctx, l.core, owner, in.Once, in.Stale, func(place node.Place, claim *node.Claim) (view *store.LicenseView, replayed bool, err error) {
		claim.Effect.LicenseKey = in.Key
		if _, err := place.DoOnce(ctx, licensing.LicenseRef(in.Key), in.Command, claim); err != nil {
			return nil, claim.Replayed(), err
		}
		view, err = l.cfg.Queries.ReadLicense(ctx, in.Key, store.DevicePage{Limit: store.ViewDevices})
		switch {
		case err != nil && claim.Replayed():
			return nil, false, err // that it can't be read is not what it came to
		case err != nil:
			// Without what it wraps, which may say that nothing was changed.
			return nil, false, fmt.Errorf("%w: read the license that was changed: %v", licensing.ErrOutcomeUnknown, err)
		}
		return view, claim.Replayed(), visible(view, owner, in.Key)
	})
}

// License looks a license up with a page of its devices, linearizably.
func (l *Licenses) License(ctx context.Context, owner licensing.Owner, key licensing.LicenseKey, page store.DevicePage) (view *store.LicenseView, err error) {
	return admitted(ctx, l.core, owner, func(node.Place) (view *store.LicenseView, err error) {
		view, err = l.cfg.Queries.ReadLicense(ctx, key, page)
		if err != nil {
			return nil, err
		}
		if err := visible(view, owner, key); err != nil {
			return nil, err
		}
		return view, nil
	})
}

// visible tells whether what a key led to may be shown to an owner.
func visible(view *store.LicenseView, owner licensing.Owner, key licensing.LicenseKey) error {
	if view == nil || view.License.Key != key || !view.License.Owner.Matches(owner) {
		return licensing.ErrLicenseNotFound
	}
	return nil
}
