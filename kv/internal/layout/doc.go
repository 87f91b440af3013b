// Package layout contains the values of a store in etcd: how each is encoded and decoded. It makes no request. Package
// kv/internal/keyspace contains the keys. Package kv decides when a key is read or written.
//
// A value is one byte of format version and a protobuf message. A field table (see
// fields.go) lists the fields of most messages; licenses, devices and events are encoded
// by hand.
//
// While nodes are updated, an older node reads values that a newer node wrote. It keeps unknown fields of
// licenses with their metadata, orders, products, endpoints and settings as they are when it writes the record back.
//
// A value that can't be decoded is an error that wraps licensing.ErrInternal.
//
// Where a value of events can't be read, placeholders take the place of the events in it, see
// eventdecode.go. A newer version's kinds of events, actors and members are stored by name, so an older
// node returns them.
//
// Every change of a license writes its whole value again, and etcd keeps the earlier values until it compacts. So
// the values leave out what most of them have in common: the prefix of an account id, the text of a ULID or of hex
// digits in favor of its bytes, and, in all later times, the years up to a license's creation. A text that would
// not be the same after decoding is stored as it is.
//
// # Files
//
//	slotmap.go       the map from slots to cells
//	events.go        encoding events
//	eventdecode.go   decoding events and checking their times; placeholders for unreadable events
//	eventformat.go   the format version of events; eventformat_next.go: the same in a build of the next version
//	blocks.go        events of several records in one value
//	ledger.go        how many bytes of events an owner has
//	usage.go         how much an owner stores
//	mark.go          when epochs were closed
//	idkey.go         the id key as it is stored: sealed
//	license.go       licenses
//	device.go        devices
//	licenserules.go  the rules that a stored license must not break
//	inline.go        devices in the record of their license
//	metadata.go      the metadata of licenses, with their external keys
//	alias.go         aliases of licenses
//	trial.go         trials
//	payment.go       payments of orders
//	sale.go          payments and refunds by time
//	providerevents.go how far the events at payment providers are read
//	sandbox.go       what the sandbox knows about orders
//	settings.go      the settings of owners
//	order.go         orders
//	product.go       products
//	terms.go         the terms of licenses and products
//	claim.go         claims on Idempotency-Keys
//	apikey.go        API keys
//	webhooks.go      endpoints of webhooks
//	receiptkeys.go   the keys that sign receipts
//	revocation.go    receipts that are void
//	listening.go     which owners listen to activations
//	progress.go      the position of an endpoint in the feed, and its counts
//	delivery.go      messages that wait or were given up, and replays
//	deliverylog.go   the log of deliveries to an endpoint
//	node.go          registrations of nodes
//	ownercodec.go    owners, order numbers and ULIDs in values
//	writers.go       the writers of a record; from them, whose swap landed
//	fields.go        tables of the fields of values
//	wire.go          fields of values
package layout
