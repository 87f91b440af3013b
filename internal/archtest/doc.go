// Package archtest holds the tests that keep the house in order: which package
// may import which, what stays pure, where fasthttp and etcd stop, what must
// carry a comment, and that nothing keeps state in package-level variables.
//
// The order itself is the table in house_test.go. A new package needs a row
// there before anything else passes. The checks read syntax only: they need no
// network and no build, and take well under a second.
package archtest
