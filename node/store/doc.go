// Package store declares what the engine and the use cases ask of a database: interfaces and their
// types. It contains no implementation and imports only package licensing. Package kv implements it on
// etcd. Package storetest contains the tests that every implementation passes.
//
// An operation that a shop or a device asks for, such as creating an order, is in package service, which calls these
// interfaces. Requests to etcd, caches and stored formats are in package kv. The interface of deliveries,
// delivery.Store, is in package delivery, and its types are here. A type that only commands of cmd/licet use, such as
// kv.MasterUsage or verify.Summary, stands beside its implementation.
//
// The map of the package:
//
//	store.go       Store and its parts: records, queries and sweeps
//	listings.go    lists of an owner's records, and their pages
//	keys.go        API keys and master keys
//	reads.go       counts the bytes that a caller reads
//	keymarks.go    marks that show which API keys may have changed
//	usage.go       how much owners store
//	events.go      events as they are stored, their order, the feed and the history
//	deliveries.go  deliveries of webhooks
//	providerevents.go how far the events at payment providers are read
//	nodes.go       the nodes, their incarnations and their times
//	space.go       which changes the store has room for
package store
