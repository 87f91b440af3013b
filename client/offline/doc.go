// Package offline is the client of programs that users install: it activates a license on a device, and checks the
// license also while there is no network, by a receipt that the service has signed.
//
//	license, err := offline.New(offline.Config{
//		URL: "https://licenses.example.com", Root: "licet_root_…", AccountID: "acct_…", Mode: "live",
//		ProductID: "editor", DeviceID: id, Store: offline.FileStore(path),
//	})
//	…
//	check, err := license.Check(ctx) // at each start, and while the program runs
//	if !check.Allowed {
//		… // check.Reason says why
//	}
//
// The root key, account, mode and product are built into the program. docs/reference/receipts.md has the rules.
//
// Check accepts a void receipt for less than revocation_max_age, and for as much longer as the device's clock is
// behind the service's, up to five minutes. Config.Grace adds to this while the service can't be reached.
//
// Check asks the service only for what is due, so a program may call it often. Between two calls, a program goes on
// with a void receipt for as much longer, and a receipt ends with its lease at the latest. Four calls in the time for
// which a receipt counts are enough:
//
//	r := check.Receipt
//	counts := r.ExpiresAt - r.IssuedAt // in seconds
//	if r.RevocationsAge > 0 {
//		counts = min(counts, r.RevocationsAge)
//	}
//	next := time.After(min(time.Hour, time.Duration(counts)*time.Second/4))
//
//	license.go  License: activate, try, validate, deactivate
//	check.go    Check: which documents are due, and what holds without a network
//	airgap.go   requests, receipts and releases that a person carries
//	state.go    what a device keeps
//	file.go     FileStore
package offline
