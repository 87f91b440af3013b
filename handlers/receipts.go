package handlers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/receipt"
)

// receiptRequest asks for a receipt.
type receiptRequest struct {
	Receipt        flag    `json:"receipt"`
	ReceiptSeconds integer `json:"receipt_seconds"`
	Nonce          text    `json:"nonce"`
	DeviceKey      text    `json:"device_key"`
}

const (
	leastReceipt = int64(licensing.MinReceiptValidity / time.Second)
	mostReceipt  = int64(licensing.MaxReceiptValidity / time.Second)
)

func (in *receiptRequest) check(c *checks) {
	c.integer("receipt_seconds", in.ReceiptSeconds, false, leastReceipt, mostReceipt)
	c.pin("nonce", in.Nonce)
	switch {
	case c.describe("device_key", Limits{MinLength: 43, MaxLength: 43}) || !in.DeviceKey.given:
	case receipt.KeyIDOf(in.DeviceKey.value) == "":
		c.add("device_key", "must be an Ed25519 public key: 32 bytes in base64url, 43 characters")
	case !in.Nonce.given:
		c.add("nonce", "is required if device_key is set")
	}
}

func (in *receiptRequest) ask() licensing.ReceiptAsk {
	return licensing.AskReceipt(in.Receipt.value, in.Nonce.given, time.Duration(in.ReceiptSeconds.value)*time.Second)
}

// sign returns the receipt for a result, signed; empty if the result has none. No entitlement of the receipt ends
// before the receipt. The transaction of the result has
// committed, so an error to read the keys is ErrOutcomeUnknown.
func (s *Server) sign(
	ctx context.Context, result *licensing.Result, entitled licensing.Entitled, in *receiptRequest,
) (string, error) {
	if result.Receipt == (licensing.ReceiptTimes{}) {
		return "", nil
	}
	l := &result.License
	if !s.cfg.Node.RemembersEntitled(l) {
		return "", fmt.Errorf("%w: the entitlements of the license have changed since", licensing.ErrOutcomeUnknown)
	}
	signer, err := s.cfg.Node.SignerAfter(ctx, l.Owner)
	if err != nil {
		return "", fmt.Errorf("%w: read the receipt keys: %v", licensing.ErrOutcomeUnknown, err)
	}
	issued, ends := result.Receipt.IssuedAt, result.Receipt.ExpiresAt
	now := s.cfg.Node.Now()
	if end := entitled.NextEnd(l.TermsSince(), now).Truncate(time.Second); !end.IsZero() && end.Before(ends) {
		ends = end
	}
	r := receipt.Receipt{
		Issuer:    s.cfg.PublicURL,
		LicenseID: l.Key.ID().String(), ProductID: l.ProductID,
		IssuedAt: issued.Unix(), NotBefore: issued.Unix(), ExpiresAt: ends.Unix(),
		AccountID: l.Owner.AccountID, Mode: string(l.Owner.Mode), DeviceID: result.Device.ID,
		Status: string(l.Status(issued)), MaxDevices: l.MaxDevices, Trial: l.IsTrial(),
		LicenseEndsAt: timeText(l.ExpiresAt), LeaseEndsAt: timeText(result.Device.LeaseEnd),
		GraceEndsAt: timeText(l.GraceEndsAt()),
		Revision:    int64(l.Revision), RevocationsAge: int64(result.Receipt.RevocationAgeSeconds),
		Nonce: in.Nonce.value, DeviceKey: receipt.KeyIDOf(in.DeviceKey.value),
	}
	if has := entitled.At(l.TermsSince(), now); has != "" {
		var entitlements map[string]json.RawMessage // so that r stays on the stack
		if err := json.Unmarshal([]byte(has), &entitlements); err != nil {
			return "", err
		}
		r.Entitlements = entitlements
	}
	r.ID = receiptID(&r)
	return r.Sign(signer.Signing(issued))
}

func timeText(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Format(timeFormat))
}

// receiptID returns the id of a receipt: a hash of the members that its content follows from. Equal receipts have one
// id. A receipt with a nonce has an id of its own.
func receiptID(r *receipt.Receipt) string {
	of := append(make([]byte, 0, 256), r.LicenseID...)
	for _, n := range []int64{r.Revision, r.IssuedAt, r.ExpiresAt} {
		of = strconv.AppendInt(append(of, 0), n, 10)
	}
	of = append(append(append(of, 0), r.DeviceID...), 0)
	if r.Nonce != "" {
		of = append(of, rand.Text()...)
	}
	sum := sha256.Sum256(of)
	return string(receiptIDs.AppendEncode(append(make([]byte, 0, 32), "rcp_"...), sum[:16]))
}

var receiptIDs = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// receiptPeriod parses a time of receipts of a product, in seconds; 0: left out.
func (c *rules) receiptPeriod(field string, in text) uint32 {
	p := c.period(field, in)
	if p.IsZero() {
		return 0
	}
	const most = int(licensing.MaxReceiptValidity / (24 * time.Hour))
	length := time.Duration(min(p.Days, most+1))*24*time.Hour + p.Clock
	if p.Years != 0 || p.Months != 0 || length%time.Second != 0 ||
		length < licensing.MinReceiptValidity || length > licensing.MaxReceiptValidity {
		c.add(field, "must be PT1M to P90D, in days, hours, minutes and whole seconds")
	}
	return uint32(length / time.Second)
}

// receiptTerms returns the terms with times in seconds.
func receiptTerms(always bool, validity, age uint32) licensing.ReceiptTerms {
	if time.Duration(validity)*time.Second == licensing.DefaultReceiptValidity {
		validity = 0
	}
	return licensing.ReceiptTerms{Always: always, ValiditySeconds: validity, RevocationAgeSeconds: age}
}

// periodText shows a time of receipts.
func periodText(length time.Duration) string {
	return licensing.Period{Days: int(length / (24 * time.Hour)), Clock: length % (24 * time.Hour)}.String()
}

// receiptFileRequest brings the request of a device without network.
type receiptFileRequest struct {
	Request text `json:"request"`
	leaseRequest
	ReceiptSeconds integer `json:"receipt_seconds"`

	activation activationRequest // what the device asks for
}

func (in *receiptFileRequest) check(c *checks) {
	in.leaseRequest.check(c)
	c.integer("receipt_seconds", in.ReceiptSeconds, false, leastReceipt, mostReceipt)
	if c.describe("request", Limits{Required: true}) {
		return
	}
	if !in.Request.given {
		c.add("request", problemRequired)
		return
	}
	asked, err := receipt.ParseRequest(in.Request.value)
	var refused *receipt.Error
	if errors.As(err, &refused) {
		c.add("request", notGood+refused.Detail)
		return
	}
	in.activation = activationFor(asked)
	of := checks{server: c.server, caller: c.caller}
	in.activation.check(&of)
	c.refuse(of.refused)
	var problems []string
	for _, f := range of.fields {
		problems = append(problems, f.Field+" "+f.Problem)
	}
	if len(problems) > 0 {
		c.add("request", notGood+strings.Join(problems, "; "))
	}
	in.activation.leaseRequest, in.activation.ReceiptSeconds = in.leaseRequest, in.ReceiptSeconds
}

// activationFor returns the activation that a device without network asks for.
func activationFor(r *receipt.Request) activationRequest {
	member := func(value string) text { return text{value: value, given: value != ""} }
	in := activationRequest{DeviceID: member(r.DeviceID), DeviceName: member(r.DeviceName)}
	in.LicenseKey = member(r.LicenseKey)
	in.Receipt = flag{value: true, given: true}
	in.Nonce, in.DeviceKey = member(r.Nonce), member(r.DeviceKey)
	if len(r.Components) > 0 {
		parts, _ := json.Marshal(r.Components) // a map of strings does not fail
		in.DeviceComponents = object{value: compactObject(parts), given: true}
	}
	return in
}

func (in *receiptFileRequest) resolve(ctx context.Context, s *Server, c *call) error {
	return in.activation.resolve(ctx, s, c)
}

// receiptFile answers the request of a device without network.
type receiptFile struct {
	LicenseID   string `json:"license_id"`
	ProductID   string `json:"product_id"`
	DeviceID    string `json:"device_id"`
	ReceiptFile string `json:"receipt_file"`
}

// makeReceiptFile binds a device without network, as an activation does, and makes its receipt file.
func (s endUserRoutes) makeReceiptFile(ctx context.Context, c *call, in receiptFileRequest) (receiptFile, error) {
	a, err := s.activate(ctx, c, in.activation)
	if err != nil {
		return receiptFile{}, err
	}
	// The device is bound: from here on, no error may say that nothing was changed.
	signer, err := s.cfg.Node.SignerAfter(ctx, licensing.Owner{AccountID: a.AccountID, Mode: a.Mode})
	if err != nil {
		return receiptFile{}, fmt.Errorf("%w: read the receipt keys: %v", licensing.ErrOutcomeUnknown, err)
	}
	set, err := s.signedSet(signer)
	if err != nil {
		return receiptFile{}, err
	}
	file, err := (&receipt.File{Keys: set.Signed, Receipt: a.Receipt}).Armor()
	if err != nil {
		return receiptFile{}, err
	}
	return receiptFile{
		LicenseID: in.activation.key.ID().String(), ProductID: a.ProductID, DeviceID: a.DeviceID, ReceiptFile: file,
	}, nil
}
