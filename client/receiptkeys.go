package client

import (
	"context"
	"errors"
	"time"
)

// ReceiptService manages the keys that sign receipts, and serves devices without network.
type ReceiptService struct{ client *Client }

// ReceiptKeys are the keys that sign the receipts of an account in a mode.
type ReceiptKeys struct {
	AccountID string `json:"account_id"`
	Mode      string `json:"mode"`
	// Root is the public half of the root key, for your program. It never changes.
	Root    string       `json:"root"`
	JWKSURL string       `json:"jwks_url"` // of the set of receipt keys, which the root key signs
	Keys    []ReceiptKey `json:"keys"`     // the set, oldest first
}

// ReceiptKey is a key that signs receipts.
type ReceiptKey struct {
	KeyID     string    `json:"kid"`
	CreatedAt time.Time `json:"created_at"`
	SignsFrom time.Time `json:"signs_from"`
	EndsAt    time.Time `json:"ends_at"` // when the key leaves the set; zero: not known yet
}

// Keys returns the keys that sign the receipts of the account and mode of the API key. The first call makes
// them.
func (s *ReceiptService) Keys(ctx context.Context, options ...CallOption) (*ReceiptKeys, error) {
	return s.receiptKeys(ctx, "PUT /v1/receipt_keys", options)
}

// RotateKeys adds a receipt key, which signs receipts ten minutes later. The root key and the receipts that were
// signed before stay valid.
func (s *ReceiptService) RotateKeys(ctx context.Context, options ...CallOption) (*ReceiptKeys, error) {
	return s.receiptKeys(ctx, "PUT /v1/receipt_keys/next", options)
}

func (s *ReceiptService) receiptKeys(ctx context.Context, route string, options []CallOption) (*ReceiptKeys, error) {
	k := new(ReceiptKeys)
	if err := s.client.do(ctx, route, nil, nil, nil, k, options); err != nil {
		return nil, err
	}
	return k, nil
}

// DeviceRequest is the request of a device without network.
type DeviceRequest struct {
	Request        string `json:"request"`                   // the armored text of the device; see package receipt
	LeaseSeconds   int    `json:"lease_seconds,omitempty"`   // as in Activation
	ReceiptSeconds int    `json:"receipt_seconds,omitempty"` // the validity of the receipt; 0: the product's
}

// ReceiptFile is the answer to a DeviceRequest.
type ReceiptFile struct {
	LicenseID string `json:"license_id"`
	ProductID string `json:"product_id"`
	DeviceID  string `json:"device_id"`
	Text      string `json:"receipt_file"` // armored, for the device
}

// MakeFile binds a device without network, as [Client.Activate] does, and returns its receipt file.
func (s *ReceiptService) MakeFile(
	ctx context.Context, request DeviceRequest, options ...CallOption,
) (*ReceiptFile, error) {
	f := new(ReceiptFile)
	if err := s.client.do(ctx, "POST /v1/receipts", nil, nil, request, f, options); err != nil {
		return nil, err
	}
	return f, nil
}

// DeviceRequests are requests of devices without network, at most 50 and 16 KiB.
type DeviceRequests struct {
	Requests       []string `json:"requests"`                  // each as in DeviceRequest
	LeaseSeconds   int      `json:"lease_seconds,omitempty"`   // as in DeviceRequest
	ReceiptSeconds int      `json:"receipt_seconds,omitempty"` // as in DeviceRequest
}

// ReceiptResult is the answer to one of DeviceRequests.
type ReceiptResult struct {
	File *ReceiptFile // nil: there is an error
	Err  error        // an [*Error]: what [ReceiptService.MakeFile] would return
}

// MakeFiles is like MakeFile for each of many requests. It returns a result for each request, in their
// order. The service may refuse some requests and not others. A batch that is sent again takes no further slot.
func (s *ReceiptService) MakeFiles(
	ctx context.Context, requests DeviceRequests, options ...CallOption,
) ([]ReceiptResult, error) {
	var answer struct {
		Results []struct {
			File    *ReceiptFile `json:"file"`
			Failure *envelope    `json:"failure"`
		} `json:"results"`
	}
	if err := s.client.do(ctx, "POST /v1/receipts/batch", nil, nil, requests, &answer, options); err != nil {
		return nil, err
	}
	results := make([]ReceiptResult, len(requests.Requests))
	for i := range results {
		switch {
		case len(answer.Results) == len(results) && answer.Results[i].File != nil:
			results[i].File = answer.Results[i].File
		case len(answer.Results) == len(results) && answer.Results[i].Failure != nil:
			results[i].Err = answer.Results[i].Failure.refusal()
		default:
			return nil, errors.New("the service has not answered each request of the batch")
		}
	}
	return results, nil
}

// Released is the device slot that a release has given back.
type Released struct {
	LicenseID      string `json:"license_id"`
	DeviceID       string `json:"device_id"`
	Removed        bool   `json:"removed"` // false: the device slot was free, or was bound again since
	CurrentDevices int    `json:"current_devices"`
}

// ReleaseSeat frees the device slot that a device without network has given back. release is the armored text that the
// device has signed; see package receipt.
func (s *ReceiptService) ReleaseSeat(ctx context.Context, release string, options ...CallOption) (*Released, error) {
	r := new(Released)
	in := map[string]string{"release": release}
	if err := s.client.do(ctx, "POST /v1/receipts/release", nil, nil, in, r, options); err != nil {
		return nil, err
	}
	return r, nil
}
