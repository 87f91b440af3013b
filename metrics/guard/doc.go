// Package guard starts goroutines. Outside of net/http, a panic that nothing recovers ends the
// process, and with it everything else that the node does. A [Guard] recovers the panic, counts it
// and logs where it came from, and the caller says what must happen next: everything that waits
// for the goroutine must still be released.
//
// internal/archtest refuses any other way to start a goroutine of the service, and recover
// outside of this package.
//
// The map of the package:
//
//	guard.go  starting goroutines, and what follows a panic
package guard
