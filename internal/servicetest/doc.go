// Package servicetest runs a whole service for tests of its clients: the API and sandbox payments on a loopback port, a
// node, and an etcd, all in the test's process. It runs the same parts as licet dev. Package internal/nodetest runs a
// service without HTTP.
//
// The map of the package:
//
//	servicetest.go  the service, its accounts and its API keys
package servicetest
