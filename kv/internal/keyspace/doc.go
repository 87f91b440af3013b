// Package keyspace contains the keys of a store in etcd: the key of each record, and the parts of a key. It makes no
// request. Package kv/internal/layout contains the values of these keys.
//
// Every key begins with the layout's version, lc2/. Keys of the store as a whole, and keys that every node watches or
// polls, begin with lc2/cell/. All other keys are an owner's, and begin with lc2/<slot>/: the slot of the owner, as two
// Crockford characters. So all keys of a slot are one range. Below lc2/cell/:
//
//	a/<account>/<mode>/   an owner's request to listen, or no longer to, until cell/listen has moved
//	backup                when the last successful backup began, as <ms>
//	books                 since when each payment has its entry pt/, as <ms>
//	check                 the check key of license keys, 32 bytes
//	epoch                 empty: its revision is the epoch into which events are recorded
//	f/<account>/<mode>/   empty: an owner that listens to activations
//	g/<endpoint>          a lease on an endpoint, under its worker's etcd lease: the worker's incarnation
//	g/-/<incarnation>     empty: a worker that delivers, under its etcd lease
//	keys                  another value after any change of an API key
//	keys/<part>           another value after any change of an API key of that part's owners
//	listen                its revision stands for all keys below cell/f/; its value names the latest changes there
//	map                   in which cell each slot is
//	master/<master>       the fingerprint of a master key in use, 32 bytes
//	n/<incarnation>       a node that is up, under a lease: its address for other nodes, and its public key
//	pe/<account>/<mode>/  how far the events of an owner's account at a payment provider are read; without <account>:
//	                      of the account that others share
//	receipts              empty: replaced by each change of receipt keys
//	recount               the node that began the latest recount of all usage, and when; the recount counts at the
//	                      revision of this key
//	recount/ended         when the latest recount that has ended was begun, and its revision
//	retired/<master>      the fingerprint of a retired master key: nothing is derived from that key any more
//	s/<slot>              empty: a slot in use, by its two characters
//	swept                 the last epoch whose events are too old, eight bytes; its revision also moves when an
//	                      owner gives up events
//	t/<epoch>             a mark: when that epoch was closed at the latest, and that the ledgers count the events up
//	                      to it
//	webhooks              empty: its revision moves with any change of an endpoint of webhooks, and with any replay
//
// The keys of owners, below lc2/<slot>/:
//
//	l/<id>                            a license: facts, writers, up to 16 devices
//	d/<id><hash>                      a device of a license with more than 16
//	m/<id>                            a license's metadata, own entitlements and customer, and its external key,
//	                                  sealed; the license's revision guards them
//	n/<alias>                         the id and the owner of a license, by its external key or a reissued key
//	f/<account>/<mode>/               an owner's settings
//	e/<account>/<mode>/<epoch><record><sequence>
//	                                  events of a record, those of one transaction; see package kv
//	e/<account>/<mode>/<epoch>b<block>
//	                                  events of up to 16 records, those of one transaction
//	h/<account>/<mode>/               empty: an owner of whom there are records, or were
//	i/<account>/<mode>/<ms><id>       empty: a license in its owner's listing, by creation
//	c/<account>/<mode>/<ms><product>  empty: a product in its owner's listing, by creation
//	b/<account>/<mode>/<email><order> empty: an order among those of its buyer
//	g/<account>/<mode>/b<email><ms><id>
//	                                  empty: a license among those of its buyer, by creation
//	g/<account>/<mode>/r<reference><ms><id>
//	                                  empty: a license among those with a customer's reference, by creation
//	j/<level><entry>                  empty: an entry of a listing on an upper level of the listing
//	o/<account>/<mode>/<order>        an order
//	p/<order>                         an order's owner, to find an order by its number alone
//	pa/<account>/<mode>/<payment>     a payment of an order: no other payment has its provider and reference
//	pi/<account>/<mode>/<order><ms><payment>
//	                                  empty: a payment in the listing of its order, by when it was recorded
//	pt/<account>/<mode>/<ms><payment> a payment or refund by its time: currency, amount and product, for reports
//	q/<account>/<mode>/<product>      a product
//	k/<hash>                          an API key, by keyring.HashAPIKey of its text
//	a/<account>/<mode>/<key>          an API key's hash, 32 bytes, by its public id
//	u/<hash>                          when an API key was used last, about, by the same hash
//	r/<account>/<mode>/               how many bytes of events an owner has, by epochs, and the last epoch whose
//	                                  events the owner gave up
//	t/<account>/<mode>/<version>      a version of a product's terms, by its hash, eight bytes; never deleted
//	rk/<account>/<mode>/              an owner's receipt keys: the sealed root secret, and when each key was made
//	rv/<account>/<mode>/<name>        a revocation, by its name in lists: up to which revision receipts are void, and
//	                                  how long they could have been valid
//	sb/<account>/t/<order>            what the sandbox knows about an order of test mode
//	tr/<account>/<mode>/<trial>       a trial: its license, and the device that has started it, as an HMAC
//	s/<account>/<mode>/               how many bytes and keys an owner stores, without events
//	v/<endpoint>/p                    the position of an endpoint in the feed, and counts of its deliveries
//	v/<endpoint>/r<event>             a message to an endpoint that waits for its next attempt
//	v/<endpoint>/f<event>             a message to an endpoint that was given up
//	v/<endpoint>/a<page>              a page of the log of deliveries to an endpoint, by its number, eight bytes
//	v/<endpoint>/j<replay>            an unfinished replay of an endpoint, by its ULID
//	w/<account>/<mode>/               all webhook endpoints of an owner
//	x/e/<ms><id>                      empty: a license with leases, by the time when the first may be removed
//	x/g/<ms><account>/<mode>/<product>
//	                                  empty: a product whose rollout is under way, by when any node may continue it
//	x/l/<ms><id>                      empty: a license whose end is to be recorded, by that end; until its events
//	                                  license.expiring are planned
//	x/n/<ms><id>                      empty: a license near its end, by its next event license.expiring, or its end,
//	                                  or the end of its grace
//	x/o/<ms><account>/<mode>/<order>  empty: an unpaid order, by its end
//	x/i/<ms><account>/<mode>/<order>  empty: a paid order that lacks licenses
//	x/r/<ms><account>/<mode>/<order>  empty: an order whose money is to go back, by the next try
//	x/s/<ms><account>/<mode>/<order>  empty: an order with a subscription in the sandbox, by its next invoice or end
//	x/t/<ms><id>                      empty: a license whose trial is to be forgotten, by time
//	x/w/<endpoint>                    empty: an endpoint that was deleted, whose deliveries are to be removed
//	y/<account>/<mode>/<key>          a claim: the result of a request with an Idempotency-Key
//	z/<ms><account>/<mode>/<key>      empty: a claim by age, for the sweep
//
// i/, c/, b/, g/, pi/, pt/, and also o/ and a/, are listings; see package kv.
//
// Package kv/verify has the same table, with a check of each kind of key.
//
// <id> is the AES block of a license's id, 16 bytes; <hash> the first
// 16 bytes of SHA-256 of a device id, which spreads the devices of a license
// evenly, so that a page of them is a bounded slice of hash space (etcd counts
// every key up to a range's end, whatever the limit); <alias> the first 16 bytes of an HMAC of an external key,
// see keyring.LicenseKeys.AliasOf, or the block of a reissued key; <trial> the same of an HMAC, see
// keyring.LicenseKeys.TrialOf; <name> a licensing.RevocationName, 16 bytes; <key> the first 16 bytes
// of SHA-256 of an Idempotency-Key; <email> the same of a buyer's e-mail address
// in lower case, <reference> of a customer's reference, and <payment> of a payment's provider and reference; <mode> is
// t or l; <ms> is eight bytes, big end first;
// <level> is 1 or 2, and <entry> a key without the layout's version and the slot.
//
// # Files
//
//	slots.go       the keys of slots
//	keys.go        the keys of licenses, orders, products, API keys, claims and endpoints, and of the cell
//	records.go     the keys of other records
//	owners.go      owners and licenses, parsed from keys
//	listings.go    the keys of listings
//	skiplist.go    the keys of the upper levels of listings
//	due.go         the keys of what is due, by time
//	deliveries.go  the keys of deliveries
//	events.go      the keys of events, of their marks and ledgers, and the order of events
//	epoch.go       epochs, blocks, and the location of a record's latest event
//	eventid.go     ids of events, and places in a feed
//	restored.go    how a restore of the store shows in revisions
package keyspace
