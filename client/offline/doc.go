// Package offline is the client of programs that users install: it activates a license on a device, and checks the
// license also while there is no network, by a receipt that the service has signed.
//
//	license, err := offline.New(offline.Config{
//		URL: "https://licenses.example.com", Root: "licet_root_…", AccountID: "acct_…", Mode: "live",
//		ProductID: "editor", DeviceID: id, Store: offline.FileStore(path),
//	})
//	…
//	check, err := license.Check(ctx) // at each start
//	if !check.Allowed {
//		… // check.Reason says why
//	}
//
// The root key, account, mode and product are built into the program. docs/reference/receipts.md has the rules.
//
// A void receipt counts for less than revocation_max_age, and for as much longer as the device's clock is behind the
// service's, up to five minutes. Config.Grace adds to this while the service can't be reached.
//
//	license.go  License: activate, try, validate, deactivate
//	check.go    Check: which documents are due, and what holds without a network
//	airgap.go   requests, receipts and releases that a person carries
//	state.go    what a device keeps
//	file.go     FileStore
package offline
