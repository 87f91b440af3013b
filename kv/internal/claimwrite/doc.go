// Package claimwrite adds the claim on an Idempotency-Key to the transaction of another record, so that the record and
// the memory of its request are stored together. Packages kv and kv/deliveries use it; it is production code.
//
// The map of the package:
//
//	claimwrite.go  the compares and puts of claims
package claimwrite
