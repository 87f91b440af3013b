package node

import (
	"context"

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
func (n *Node) License(ctx context.Context, owner licet.Owner, key licet.LicenseKey, page DevicePage) (view *LicenseView, err error) {
	if err := n.admission.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { n.admission.leave(err) }()
	view, err = n.cfg.Store.ReadLicense(ctx, key, page)
	if err != nil {
		return nil, err
	}
	if err := visible(view, owner, key); err != nil {
		return nil, err
	}
	return view, nil
}

// visible tells whether what a key led to may be shown to an owner.
func visible(view *LicenseView, owner licet.Owner, key licet.LicenseKey) error {
	if view == nil || view.License.Key != key || !view.License.Owner.Matches(owner) {
		return licet.ErrLicenseNotFound
	}
	return nil
}
