// Package fair shares places and amounts among owners, so that no owner takes all of them.
//
// The map of the package:
//
//	fair.go    Places, which callers may wait for
//	shares.go  Shares of an amount, such as bytes
package fair
