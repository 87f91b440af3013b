package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"licet/client/offline"
	"licet/receipt"
)

// request prints an armored request for a receipt, for a device that never has a network.
func request(license *offline.License, licenseKey string, out io.Writer) error {
	name, _ := os.Hostname()
	text, err := license.Request(licenseKey, name, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, text)
	return err
}

// take takes the receipt file that answers the request of this program.
func take(license *offline.License, path string, out io.Writer) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := license.Import(string(text)); err != nil {
		return err
	}
	fmt.Fprintln(out, "the receipt is good")
	return nil
}

// release prints an armored release, which gives the device slot back.
func release(license *offline.License, out io.Writer) error {
	text, err := license.Release()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, text)
	return err
}

// verify verifies the receipt file that answers a request of licet offline request. It keeps nothing: so it takes
// receipts that are older than others of the device, and does not notice a clock that is set back.
func verify(device, requestPath, filePath string, out io.Writer) error {
	root, err := receipt.ParseRoot(os.Getenv("LICET_ROOT"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(requestPath)
	if err != nil {
		return err
	}
	asked, err := receipt.ParseRequest(string(text))
	if err != nil {
		return err
	}
	if text, err = os.ReadFile(filePath); err != nil {
		return err
	}
	file, err := receipt.ParseFile(string(text))
	if err != nil {
		return err
	}
	verifier := receipt.Verifier{Root: root, AccountID: os.Getenv("LICET_ACCOUNT"), Mode: "test", ProductID: "notes",
		DeviceID: device, Nonce: asked.Nonce}
	r, err := verifier.VerifyFile(file, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the receipt is good until", time.Unix(r.ExpiresAt, 0).UTC().Format(time.RFC3339))
	return nil
}
