// Package nodetest starts services on a real etcd, for the tests of package node and of package node/service: a
// service.Service built from a node and a store, without HTTP. Package internal/servicetest runs a service with HTTP.
//
//	nodetest.go  the etcd, services, licenses and devices
//	records.go   orders, Idempotency-Keys and events
//	clock.go     a clock that tests move, and comparisons of clocks
package nodetest
