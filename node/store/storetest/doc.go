// Package storetest contains the tests that every implementation of store.Store passes, and a wrapper
// that makes a store fail on demand. It tests by way of the interfaces only: what an implementation
// stores, and how, is for its own tests.
//
// Here belongs a test of what Load, Commit, a list or a claim must do on any database. A test of a use case, such as
// paying an order twice, belongs to package service, and a test of requests to etcd to package kv.
//
// The map of the package:
//
//	storetest.go               the suites, and the records that tests share
//	faulty.go                  a store that fails on demand
//	records.go                 load and commit of records
//	devices.go                 devices of a license: their number, entries and pages
//	inactive.go                removal of inactive devices, and devices that come back with another id
//	leases.go                  leases of devices
//	revocations.go             which receipts are void
//	providerevents.go          how far the events at payment providers are read
//	due.go                     work that is due
//	products.go                products
//	webhooks.go                webhook endpoints
//	aliases.go                 licenses by external keys, and settings of owners
//	keys.go                    API keys and master keys
//	keyclaims.go               claims stored along with API keys
//	customers.go               lists of customers' licenses
//	listings.go                lists, also by buyer and product
//	listings_pages.go          pages of lists
//	events.go                  the feed and the history of events
//	deliveries.go              leases on endpoints
//	deliveries_checkpoints.go  checkpoints of deliveries
//	deliveries_lists.go        lists of deliveries
//	deliveries_replays.go      replays, also asked for several times at once; removing deleted endpoints
package storetest
