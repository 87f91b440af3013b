package offline

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"licet/client"
	"licet/receipt"
)

// Config describes a program, its account, its service, and its store.
type Config struct {
	URL       string // of the service
	Root      string // the public half of the account's root key in this mode: licet_root_…
	AccountID string
	Mode      string // test or live
	ProductID string
	DeviceID  string // 1 to 255 characters that stay the same on this device
	Store     Store
	// Grace is how much longer a receipt counts without a newer list of revocations than the receipt says.
	Grace   time.Duration
	Receipt time.Duration   // the validity of receipts to ask for; 0: the product's
	Lease   time.Duration   // the length of leases to ask for; 0: the product's
	Options []client.Option // of the client of the service
}

// License is the license of a program on a device. It is safe for concurrent use, but not for two processes with one
// Store.
type License struct {
	cfg      Config
	verifier receipt.Verifier
	patient  *client.Client
	hasty    *client.Client // for a program that may run anyway
	now      func() time.Time
	lock     sync.Mutex
}

// New returns the license of a program on this device. It neither reads the store nor asks the service.
func New(cfg Config) (*License, error) {
	root, err := receipt.ParseRoot(cfg.Root)
	if err != nil {
		return nil, fmt.Errorf("offline: %w", err)
	}
	if cfg.AccountID == "" || cfg.Mode == "" || cfg.ProductID == "" || cfg.DeviceID == "" || cfg.Store == nil {
		return nil, errors.New("offline: AccountID, Mode, ProductID, DeviceID and Store are required")
	}
	l := &License{cfg: cfg, now: time.Now, verifier: receipt.Verifier{Root: root, AccountID: cfg.AccountID,
		Mode: cfg.Mode, ProductID: cfg.ProductID, DeviceID: cfg.DeviceID, Grace: cfg.Grace}}
	if l.patient, err = client.New(cfg.URL, "", cfg.Options...); err != nil {
		return nil, err
	}
	l.hasty, err = client.New(cfg.URL, "", append(slices.Clip(cfg.Options), client.RetryFor(0))...)
	return l, err
}

// NotValidError is the service's answer that this device may not use the license.
type NotValidError struct{ Reason string } // such as license_expired

func (e *NotValidError) Error() string { return "the license is not valid: " + e.Reason }

// ErrNoReceipt means that the service issues no receipts.
var ErrNoReceipt = errors.New("offline: the service issues no receipts")

// Activate binds this device to a license; with an empty key, to the license that is stored.
func (l *License) Activate(ctx context.Context, licenseKey, deviceName string) (*receipt.Receipt, error) {
	return l.obtained(ctx, func(ctx context.Context, s *state, ask client.ReceiptRequest) (string, string, error) {
		if licenseKey = cmp.Or(licenseKey, s.LicenseKey); licenseKey == "" {
			return "", "", errNotActivated
		}
		return l.activate(ctx, licenseKey, deviceName, ask)
	})
}

// activate activates a license on this device. Like any asking, it returns the license key along with the receipt.
func (l *License) activate(
	ctx context.Context, licenseKey, deviceName string, ask client.ReceiptRequest,
) (string, string, error) {
	a, err := l.patient.Activate(ctx, client.Activation{LicenseKey: licenseKey, DeviceID: l.cfg.DeviceID,
		DeviceName: deviceName, ProductID: l.cfg.ProductID, AccountID: l.cfg.AccountID, Mode: l.cfg.Mode,
		LeaseSeconds: int(l.cfg.Lease / time.Second), ReceiptRequest: ask})
	if err != nil {
		return "", "", err
	}
	return licenseKey, a.Receipt, nil
}

// Trial starts a trial of the product on this device, or goes on with a trial that this device has started. An address
// is needed only where the product may be tried once for an address. If this device has given the trial back, Trial
// activates it again, unless another license is stored. Trial fails with the refusal of that activation, such as
// license_expired, if the trial has ended.
func (l *License) Trial(ctx context.Context, buyerEmail string) (*receipt.Receipt, error) {
	return l.obtained(ctx, func(ctx context.Context, s *state, ask client.ReceiptRequest) (string, string, error) {
		a, err := l.patient.StartTrial(ctx, client.NewTrial{ProductID: l.cfg.ProductID, AccountID: l.cfg.AccountID,
			Mode: l.cfg.Mode, DeviceID: l.cfg.DeviceID, BuyerEmail: buyerEmail,
			LeaseSeconds: int(l.cfg.Lease / time.Second), ReceiptRequest: ask})
		switch {
		case err != nil:
			return "", "", err
		case a.Receipt == "" && s.mayTake(a.LicenseKey): // the device lacks the trial, or the trial is not usable
			s.LicenseKey = a.LicenseKey
			return l.activate(ctx, a.LicenseKey, "", ask)
		}
		return a.LicenseKey, a.Receipt, nil
	})
}

// mayTake reports whether a trial that the device does not hold may become the stored license: no other license is
// stored. A receipt that was imported from a file has no license key.
func (s *state) mayTake(trial string) bool {
	return trial != "" && (s.LicenseKey == trial || s.LicenseKey == "" && s.Documents.Receipt == "")
}

// Validate asks the service now whether this device may use its license. It fails if not, and if no answer comes.
func (l *License) Validate(ctx context.Context) (r *receipt.Receipt, err error) {
	err = l.locked(func(s *state) (err error) {
		r, err = l.validate(ctx, l.patient, s)
		return err
	})
	return r, err
}

// Deactivate frees this device's slot of the license, and forgets the license.
func (l *License) Deactivate(ctx context.Context) error {
	return l.locked(func(s *state) error {
		if s.LicenseKey == "" {
			return errNotActivated
		}
		_, err := l.patient.Deactivate(ctx, client.Deactivation{LicenseKey: s.LicenseKey, DeviceID: l.cfg.DeviceID,
			AccountID: l.cfg.AccountID, Mode: l.cfg.Mode})
		if err == nil {
			s.LicenseKey, s.Documents.Receipt = "", ""
		}
		return err
	})
}

// asking asks the service for a receipt, and returns the license key along with the receipt.
type asking func(ctx context.Context, s *state, ask client.ReceiptRequest) (licenseKey, document string, err error)

func (l *License) obtained(ctx context.Context, ask asking) (r *receipt.Receipt, err error) {
	err = l.locked(func(s *state) (err error) {
		r, err = l.obtain(ctx, l.patient, s, ask)
		return err
	})
	return r, err
}

func (l *License) validate(ctx context.Context, api *client.Client, s *state) (*receipt.Receipt, error) {
	if s.LicenseKey == "" {
		return nil, errNotActivated
	}
	ask := func(ctx context.Context, s *state, ask client.ReceiptRequest) (string, string, error) {
		v, err := api.Validate(ctx, client.Validation{LicenseKey: s.LicenseKey, DeviceID: l.cfg.DeviceID,
			ProductID: l.cfg.ProductID, AccountID: l.cfg.AccountID, Mode: l.cfg.Mode,
			LeaseSeconds: int(l.cfg.Lease / time.Second), ReceiptRequest: ask})
		switch {
		case err != nil:
			return "", "", err
		case !v.Valid:
			return "", "", &NotValidError{v.Reason}
		}
		return s.LicenseKey, v.Receipt, nil
	}
	r, err := l.obtain(ctx, api, s, ask)
	if isVerdict(err) {
		s.Documents.Receipt = "" // the answer counts without a network, too
	}
	return r, err
}

// isVerdict reports whether the service has answered that this device may not use the license.
func isVerdict(err error) bool {
	var no *NotValidError
	return errors.As(err, &no) || client.HasReason(err, client.ReasonInvalidLicenseKey, client.ReasonLicenseNotFound)
}

// obtain asks for a receipt, and accepts no receipt but the answer to this request.
func (l *License) obtain(ctx context.Context, api *client.Client, s *state, ask asking) (*receipt.Receipt, error) {
	nonce := rand.Text()
	key, document, err := ask(ctx, s, client.ReceiptRequest{
		Receipt: true, ReceiptSeconds: int(l.cfg.Receipt / time.Second), Nonce: nonce,
	})
	switch {
	case err != nil:
		return nil, err
	case document == "":
		return nil, ErrNoReceipt
	}
	next := *s
	next.Documents.Receipt = document
	verified, err := l.accept(ctx, api, s, next, nonce)
	if err != nil {
		return nil, err
	}
	s.LicenseKey = key
	return verified.Receipt, nil
}
