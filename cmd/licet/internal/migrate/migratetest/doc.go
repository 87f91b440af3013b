// Package migratetest has servers that answer as the APIs of other services do. A test compares their responses with
// testdata/responses.yaml, which is written after what the services publish: a schema at Polar; a reference with
// examples at Keygen, Lemon Squeezy and Gumroad, which publish no schema.
//
// The map of the package:
//
//	fake.go  the servers, and the licenses that they return
package migratetest
