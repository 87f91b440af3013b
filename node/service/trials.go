package service

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// Trials offers the use cases of trials.
type Trials struct{ *core }

// NewTrial asks for a trial of a product by a device. The caller has validated the fields.
type NewTrial struct {
	ProductID  string
	Device     string
	DeviceName string
	Named      bool
	Components licensing.Components
	BuyerEmail string
	By         licensing.Actor // licensing.EndUser: the request came without an API key
	Network    netip.Addr      // of an end user
	Lease      time.Duration   // see licensing.Activate
	Receipt    licensing.ReceiptAsk
}

// The refusals of trials that may be started once for an address.
var (
	// ErrTrialNeedsKey refuses an end user: addresses are not verified.
	ErrTrialNeedsKey   = errors.New("a trial per e-mail address needs an API key")
	errTrialNeedsEmail = licensing.InvalidField("buyer_email",
		"is required: this product may be tried once for an e-mail address")
)

// StartTrial issues a license for a trial of an owner's product and binds the device. The result has Created. The same
// device gets the license again until an order upgrades it; any other request for the same trial fails with
// ErrTrialUsed, and costs as many requests to the store.
func (t *Trials) StartTrial(
	ctx context.Context, owner licensing.Owner, in NewTrial,
) (licensing.Result, error) {
	caller := owner
	if in.By == licensing.EndUser {
		caller = licensing.Owner{}
	}
	return admittedFor(ctx, t.engine, t.callerShare(caller, in.Network),
		func(place *node.Place) (licensing.Result, error) { return t.start(ctx, place, owner, in) })
}

// start is StartTrial in an admission place, which it counts for the owner once the product is found.
func (t *Trials) start(
	ctx context.Context, place *node.Place, owner licensing.Owner, in NewTrial,
) (result licensing.Result, err error) {
	product, err := t.readProduct(ctx, owner, in.ProductID)
	switch {
	case err != nil:
		return licensing.Result{}, err
	case !product.Trial.Offered():
		return licensing.Result{}, licensing.ErrTrialNotOffered
	case product.Trial.PerEmail && in.By == licensing.EndUser:
		return licensing.Result{}, ErrTrialNeedsKey
	case product.Trial.PerEmail && in.BuyerEmail == "":
		return licensing.Result{}, errTrialNeedsEmail
	}
	if in.By == licensing.EndUser { // from here on, the owner exists
		if err := place.Become(owner); err != nil {
			return licensing.Result{}, err
		}
	}
	if err := t.budgets.learn(ctx, owner); err != nil {
		return licensing.Result{}, err
	}
	terms := product.TrialTerms()
	key, err := t.mint(owner, terms)
	if err != nil {
		return licensing.Result{}, err
	}
	name := t.cfg.LicenseKeys.TrialOf(owner, product.ID, product.Trial, in.Device, in.BuyerEmail)
	mark := t.cfg.LicenseKeys.TrialDeviceOf(name, in.Device)
	result, err = place.Do(ctx, licensing.TrialRef(owner, name), licensing.StartTrial{
		Name: name, ProductID: product.ID, Owner: owner, Terms: terms, Key: key,
		Device: in.Device, DeviceName: in.DeviceName, Named: in.Named, Mark: mark,
		Components: in.Components, Lease: in.Lease,
		BuyerEmail: in.BuyerEmail, By: in.By, Network: in.Network, Receipt: in.Receipt,
	})
	if err != nil || result.Created {
		return result, err
	}
	result, err = t.again(ctx, owner, result.Trial(), mark, in.Device)
	if err != nil || !in.Receipt.Wanted() && !result.License.Receipts.Always {
		return result, err
	}
	return t.againWithReceipt(ctx, *place, result, in)
}

// again returns the license of a trial that was started before, to the device that has started it.
func (t *Trials) again(
	ctx context.Context, owner licensing.Owner, trial licensing.Trial, mark licensing.TrialDevice, device string,
) (licensing.Result, error) {
	page := store.DevicePage{Owner: owner, Limit: licensing.MaxTrialDevices}
	view, err := t.cfg.Queries.ReadLicense(ctx, trial.License, page)
	switch {
	case err != nil:
		return licensing.Result{}, err
	case view == nil:
		return licensing.Result{}, licensing.ErrUnavailable // a sweep was first: the next request starts another trial
	case trial.Device != mark, !view.License.IsTrial():
		return licensing.Result{}, licensing.ErrTrialUsed
	}
	now := t.engine.Now()
	if view.License.Lease.Leased() { // its end is of no use by a clock that may be wrong
		if err := t.engine.ActsByTime(); err != nil {
			return licensing.Result{}, err
		}
	}
	view.HideLapsed(now)
	result := licensing.Result{License: view.License, Device: licensing.Device{ID: device}}
	for _, d := range view.Devices {
		if d.ID == device {
			result.Device, result.LeaseLeft = d, max(d.LeaseEnd.Sub(view.License.LeaseTime(now)), 0)
		}
	}
	return result, nil
}

// againWithReceipt returns what again has returned, with a receipt if the device may use the license.
func (t *Trials) againWithReceipt(
	ctx context.Context, place node.Place, result licensing.Result, in NewTrial,
) (licensing.Result, error) {
	with, err := place.Do(ctx, licensing.LicenseRef(result.License.Key), licensing.ValidateLicense{
		Target: licensing.Target{Key: result.License.CurrentKey(), By: in.By}, Device: in.Device,
		SeenStep: t.cfg.SeenStep, Lease: in.Lease, Receipt: in.Receipt,
	})
	if err != nil || with.Invalid != "" {
		return result, err
	}
	return with, nil
}

// SweepTrials forgets the trials that ended, or were upgraded, long ago.
func (s *Sweeps) SweepTrials(ctx context.Context) error {
	now, err := s.timeToActBy()
	if err != nil {
		return err
	}
	return s.eachDue(ctx, licensing.DueTrial, store.DueSpan{Until: now},
		func(ctx context.Context, ref licensing.Ref) error {
			return s.forgetTrial(ctx, ref, licensing.ForgetTrial{Before: now})
		})
}

// forgetTrial deletes a trial along with its license, or, if the license was upgraded, alone.
func (s *Sweeps) forgetTrial(ctx context.Context, ref licensing.Ref, forget licensing.ForgetTrial) error {
	if err := s.engine.StartWork(); err != nil {
		return err
	}
	defer s.engine.EndWork()
	_, err := s.engine.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		loaded, err := s.cfg.Records.Load(ctx, store.Want{Ref: ref})
		if err != nil || loaded[0].Record.License == nil || loaded[0].Record.License.Trial.IsZero() {
			return licensing.Result{}, err
		}
		l := loaded[0].Record.License
		trial := l.TrialRef()
		return s.engine.WithRecordLock(ctx, trial, func(ctx context.Context) (licensing.Result, error) {
			return s.engine.SwapTogether(ctx, node.Step{Ref: ref, Cmd: forget},
				node.Step{Ref: trial, Then: func(forgotten licensing.Result) licensing.Command {
					return licensing.DropTrial{License: l.Key, Drop: forgotten.Removed}
				}})
		})
	})
	if licensing.ReasonOf(err) == licensing.ReasonLicenseNotFound {
		return nil // another node was first
	}
	return err
}
