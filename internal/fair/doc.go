// Package fair shares a number of places among owners, so that no owner takes all of them.
//
// The map of the package:
//
//	fair.go  Places
package fair
