package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"licet/client"
)

// A batch of requests goes to the service in one call. The service takes 50 requests, and 16 KiB with all members.
const (
	maxBatch      = 50
	maxBatchBytes = 15 << 10
)

// lengths are the lengths to ask for, in seconds; 0: the product's.
type lengths struct{ lease, receipt int }

// deviceFiles is a batch of requests of devices without network.
type deviceFiles struct {
	lengths
	requests []string
	paths    []string // of the requests
	files    []string // where the receipt files go
	bytes    int      // of the requests in JSON
}

// fits reports whether another request fits into the batch. Any request fits into an empty batch.
func (b *deviceFiles) fits(request string) bool {
	return len(b.requests) == 0 || len(b.requests) < maxBatch && b.bytes+jsonLength(request) <= maxBatchBytes
}

func (b *deviceFiles) add(path, file, request string) {
	b.requests, b.paths, b.files = append(b.requests, request), append(b.paths, path), append(b.files, file)
	b.bytes += jsonLength(request)
}

// jsonLength returns the length of a text in an array of JSON.
func jsonLength(text string) int {
	encoded, _ := json.Marshal(text) // a text does not fail
	return len(encoded) + len(",")
}

// issueReceipts sends a batch, empties the batch, writes the receipt files and prints their paths. It reports each
// request that fails, and returns their number.
func (c *session) issueReceipts(b *deviceFiles) (failed int) {
	if len(b.requests) == 0 {
		return 0
	}
	results, err := c.client.Receipts.MakeFiles(c.ctx,
		client.DeviceRequests{Requests: b.requests, LeaseSeconds: b.lease, ReceiptSeconds: b.receipt})
	for i, path := range b.paths {
		problem := error(callError{err})
		if err == nil {
			problem = c.writeReceipt(b, i, results[i])
		}
		if problem != nil {
			failed++
			fmt.Fprintf(c.stderr, "%s: %s\n", path, c.explain(problem))
		}
	}
	*b = deviceFiles{lengths: b.lengths}
	return failed
}

// writeReceipt writes the receipt file for a request of a batch. The client waits and sends the request again, alone,
// where that may help.
func (c *session) writeReceipt(b *deviceFiles, i int, result client.ReceiptResult) error {
	made, err := result.File, result.Err
	var refused *client.Error
	if errors.As(err, &refused) && refused.Retryable {
		made, err = c.client.Receipts.MakeFile(c.ctx,
			client.DeviceRequest{Request: b.requests[i], LeaseSeconds: b.lease, ReceiptSeconds: b.receipt})
	}
	if err != nil {
		return callError{err}
	}
	if err := os.WriteFile(b.files[i], []byte(made.Text), 0o600); err != nil {
		return err
	}
	return c.write([]byte(b.files[i] + "\n"))
}
