package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/receipt"
)

const (
	// maxReceiptBatch bounds the requests of a batch.
	maxReceiptBatch = 50
	// expectedReceiptFile is about how many bytes a receipt file takes.
	expectedReceiptFile = 4 << 10
	// maxReceiptFiles bounds the receipt files of a batch, in bytes. Receipts with many entitlements are long.
	maxReceiptFiles = 512 << 10
)

// receiptBatch brings the requests of devices without network.
type receiptBatch struct {
	Requests texts `json:"requests"`
	leaseRequest
	ReceiptSeconds integer `json:"receipt_seconds"`
}

func (in *receiptBatch) check(c *checks) {
	in.leaseRequest.check(c)
	c.integer("receipt_seconds", in.ReceiptSeconds, false, leastReceipt, mostReceipt)
	switch n := len(in.Requests.value); {
	case c.describe("requests", Limits{Required: true, MinItems: 1, MaxItems: maxReceiptBatch}):
	case !in.Requests.given:
		c.add("requests", problemRequired)
	case n < 1 || n > maxReceiptBatch:
		c.add("requests", fmt.Sprintf("must be 1 to %d requests: send the others in further calls", maxReceiptBatch))
	}
}

// receiptResults answers a batch, in the order of its requests.
type receiptResults struct {
	Results []receiptResult `json:"results"`
}

// receiptResult has the receipt file for a request, or why there is none: the envelope of that error, which the request
// would get by itself.
type receiptResult struct {
	File    *receiptFile     `json:"file,omitempty"`
	Failure *failureEnvelope `json:"failure,omitempty"`
}

// makeReceiptFiles answers requests one after the other, as makeReceiptFile does, so a batch has at most one command
// under way. An unexpected error ends the batch: its requests can be sent again.
func (s endUserRoutes) makeReceiptFiles(ctx context.Context, c *call, in receiptBatch) (receiptResults, error) {
	if err := s.responses.reserve(c, len(in.Requests.value)*expectedReceiptFile); err != nil {
		return receiptResults{}, err
	}
	answer, size := receiptResults{Results: make([]receiptResult, 0, len(in.Requests.value))}, 0
	counted := c.decisions // about the whole batch
	for i, request := range in.Requests.value {
		file, err := receiptFile{}, error(licensing.ErrOverloaded)
		if size < maxReceiptFiles {
			file, err = s.makeOne(ctx, c, i, receiptFileRequest{
				Request: text{value: request, given: true}, leaseRequest: in.leaseRequest,
				ReceiptSeconds: in.ReceiptSeconds,
			})
		}
		c.decisions = counted
		if err == nil {
			size += len(file.ReceiptFile)
			s.activations.count(0, c.bound)
			answer.Results = append(answer.Results, receiptResult{File: &file})
			continue
		}
		known, k := s.errors.explain(err)
		if known == licensing.ErrInternal {
			return receiptResults{}, err
		}
		s.activations.count(k.code(), false)
		failure := s.failureEnvelope(known, k, k.retry != never, c.id)
		answer.Results = append(answer.Results, receiptResult{Failure: &failure})
	}
	return answer, nil
}

// makeOne answers a request of a batch. Each counts against all limits, as a request by itself does: dispatch has
// counted the first one against the limit of the account.
func (s endUserRoutes) makeOne(ctx context.Context, c *call, i int, in receiptFileRequest) (receiptFile, error) {
	if i > 0 {
		if err := s.rates.account(c); err != nil {
			return receiptFile{}, err
		}
	}
	of := checks{server: s.Server, caller: c.key}
	in.check(&of)
	err := of.err()
	if err == nil {
		err = in.resolve(ctx, s.Server, c)
	}
	c.bound = false
	var file receiptFile
	if err == nil {
		file, err = s.makeReceiptFile(ctx, c, in)
	}
	if err != nil {
		err = s.rates.endUserFailure(c, err)
	}
	return file, err
}

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
		set.Keys = append(set.Keys, receipt.NewJSONWebKey(signer.Of(k).Public()))
	}
	return set
}
