package handlers

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/receipt"
)

// releaseRequest brings the release of a device without network.
type releaseRequest struct {
	Release text `json:"release"`

	owner licensing.Owner // as the release says
}

func (in *releaseRequest) check(c *checks) {
	if c.describe("release", Limits{Required: true}) {
		return
	}
	if !in.Release.given {
		c.add("release", problemRequired)
		return
	}
	account, mode, err := receipt.ReleaseOwner(in.Release.value)
	var refused *receipt.Error
	if errors.As(err, &refused) {
		c.add("release", notGood+refused.Detail)
	}
	in.owner = licensing.Owner{AccountID: account, Mode: licensing.Mode(mode)}
}

// released answers a release.
type released struct {
	LicenseID      string `json:"license_id"`
	DeviceID       string `json:"device_id"`
	Removed        bool   `json:"removed"`
	CurrentDevices int    `json:"current_devices"`
}

// releaseSeat unbinds the device that has signed a release, unless the device was bound again, or the license key was
// replaced, since the device got its receipt.
func (s endUserRoutes) releaseSeat(ctx context.Context, c *call, in releaseRequest) (released, error) {
	if c.key != nil && c.key.Owner != in.owner {
		return released{}, licensing.ErrLicenseNotFound
	}
	signer, err := s.signerOf(ctx, c, in.owner)
	switch {
	case errors.Is(err, errNoReceiptKeys):
		return released{}, releaseProblem("the account has no receipt keys")
	case err != nil:
		return released{}, err
	}
	r, err := receipt.OpenRelease(in.Release.value, allKeys(signer))
	var refused *receipt.Error
	switch {
	case errors.As(err, &refused):
		return released{}, releaseProblem(refused.Detail)
	case err != nil:
		return released{}, err
	case r.AccountID != in.owner.AccountID || r.Mode != string(in.owner.Mode):
		return released{}, licensing.ErrLicenseNotFound
	}
	id, ok := s.keys.ParseID(r.LicenseID)
	if !ok {
		return released{}, licensing.ErrLicenseNotFound
	}
	key := id.Key("")
	if err := s.rates.license(c, key); err != nil {
		return released{}, err
	}
	result, err := s.cfg.Node.DeactivateDevice(ctx, licensing.DeactivateDevice{
		Target: s.target(c, key, in.owner), Device: r.DeviceID, ReceiptAt: time.Unix(r.IssuedAt, 0),
		ReceiptRevision: uint64(r.Revision),
	})
	if err != nil {
		return released{}, err
	}
	return released{LicenseID: r.LicenseID, DeviceID: r.DeviceID, Removed: result.Removed,
		CurrentDevices: result.License.CurrentDevices}, nil
}

const notGood = "is not good: "

func releaseProblem(problem string) error {
	return licensing.InvalidField("release", notGood+problem)
}

// allKeys returns all receipt keys, also those whose last receipt has ended.
func allKeys(signer *service.ReceiptSigner) *receipt.KeySet {
	set := &receipt.KeySet{}
	for _, k := range signer.Keys.Keys {
		set.Keys = append(set.Keys, receipt.NewJSONWebKey(publicHalf(signer.PrivateKey(k))))
	}
	return set
}
