// Package deliveriestest stores webhook endpoints for the tests of package deliveries and of the packages above it.
//
// The map of the package:
//
//	deliveriestest.go  writing endpoints
package deliveriestest
