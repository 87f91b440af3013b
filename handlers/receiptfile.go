package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"licet/licensing"
	"licet/receipt"
)

// receiptFileRequest brings the request of a device without network.
type receiptFileRequest struct {
	Request        text    `json:"request"`
	ReceiptSeconds integer `json:"receipt_seconds"`

	activation activationRequest // what the device asks for
}

func (in *receiptFileRequest) check(c *checks) {
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
	in.activation.ReceiptSeconds = in.ReceiptSeconds
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
	signer, err := s.cfg.Node.Signer(ctx, licensing.Owner{AccountID: a.AccountID, Mode: a.Mode})
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
