package handlers

import (
	"context"
	"fmt"

	"licet/licensing"
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
	Requests       texts   `json:"requests"`
	ReceiptSeconds integer `json:"receipt_seconds"`
}

func (in *receiptBatch) check(c *checks) {
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
				Request: text{value: request, given: true}, ReceiptSeconds: in.ReceiptSeconds,
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
