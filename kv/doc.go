// Package kv keeps records in etcd. It implements store.Store, and no etcd type
// leaves it.
//
// # Keys
//
// Every key begins with the layout's version, lc1/. Below it:
//
//	l/<id>                        a license: facts, writers, up to 16 devices
//	d/<id><hash>                  a device of a license with more than 16
//	m/<id>                        a license's metadata, as JSON; the license's revision guards it
//	e/<account>/<mode>/<epoch><record><sequence>
//	                              events of a record, those of one transaction, see below
//	e/<account>/<mode>/<epoch>b<block>
//	                              those of up to 16 records, likewise
//	h/<account>/<mode>/           empty: an owner of whom there are events, or were
//	f/<account>/<mode>/           empty: an owner that listens to activations
//	g/<endpoint>                  a claim on an endpoint, under its worker's lease: the worker's incarnation
//	g/-/<incarnation>             empty: a worker that delivers, under its lease
//	i/<account>/<mode>/<ms><id>   empty: a license in its owner's listing, by creation
//	c/<account>/<mode>/<ms><product>
//	                              empty: a product in its owner's listing, by creation
//	b/<account>/<mode>/<email><order>
//	                              empty: an order among those of its buyer
//	j/<level><entry>              empty: an entry of a listing on an upper level of it
//	n/<incarnation>               a node that is up, under a lease: its address for other nodes, and its public key
//	o/<account>/<mode>/<order>    an order
//	p/<order>                     an order's owner, for whoever knows only its number
//	q/<account>/<mode>/<product>  a product
//	k/<hash>                      an API key, by the SHA-256 of its text
//	a/<account>/<mode>/<key>      an API key's hash, 32 bytes, by its public id
//	u/<hash>                      when an API key was used last, about, by the SHA-256 of its text
//	v/<endpoint>/p                how far the deliveries to an endpoint are
//	v/<endpoint>/r<event>         a message to it that is to be tried again
//	v/<endpoint>/f<event>         one that was given up
//	v/<endpoint>/a<page>          a page of what was delivered to it, by its number, eight bytes
//	v/<endpoint>/j<replay>        a replay that was asked for and is not done, by its ULID
//	w/<account>/<mode>/           an owner's endpoints of webhooks, all of them
//	x/a/<account>/<mode>/         an owner's request to listen, or no longer to, until s/listen has moved
//	x/l/<ms><id>                  a license whose end is to be recorded, by that end; the key's prefix
//	x/o/<ms><account>/<mode>/<order>  empty: an unpaid order, by its end
//	x/r/<ms><account>/<mode>/<order>  empty: an order whose money is to go back, by the next try
//	x/w/<endpoint>                empty: an endpoint that was deleted, whose deliveries are to be removed
//	y/<account>/<mode>/<key>      a claim: what became of a request with an Idempotency-Key
//	z/<ms><account>/<mode>/<key>  empty: a claim by age, for the sweep
//	s/backup                      when the last backup was begun that ended well, as <ms>
//	s/check                       the check key of license keys, 32 bytes
//	s/epoch                       empty: its revision is the epoch into which events are recorded
//	s/keys                        another value after any change of an API key
//	s/keys/<part>                 another value after any change of an API key of that part's owners
//	s/ledger/<account>/<mode>/    how many bytes of events an owner has, by epochs, and the last epoch
//	                              whose events the owner gave up
//	s/listen                      its revision stands for all keys below f/; its value names the latest changes of these
//	s/master/<master>             the fingerprint of a master key in use, 32 bytes
//	s/retired/<master>            the fingerprint of one that nothing is derived from any more
//	s/swept                       the last epoch whose events are too old, eight bytes; its revision also
//	                              moves when an owner gives up events
//	s/webhooks                    empty: its revision moves with any change of an endpoint of webhooks,
//	                              and with any replay
//	t/<epoch>                     a mark: when that epoch was sealed at the latest, and that the ledgers
//	                              count the events up to it
//
// i/, c/, b/, and also o/ and a/, are listings, see below.
//
// [Store.Verify] has the same table with a check of each, in verify.go.
//
// <id> is a license key's 25 characters packed into 16 bytes; <hash> the first
// 16 bytes of SHA-256 of a device id, which spreads the devices of a license
// evenly, so that a page of them is a bounded slice of hash space (etcd counts
// every key up to a range's end, whatever the limit); <key> the first 16 bytes
// of SHA-256 of an Idempotency-Key; <email> the same of a buyer's e-mail address
// in lower case; <mode> is t or l; <ms> is eight bytes, big end first; <level> is
// 1 or 2, and <entry> a key without the layout's version.
//
// # Listings
//
// A listing is read from its end, page by page. Its keys sort by time: by <ms>, or
// by the time that a ULID begins with. An entry is written in the transaction that
// makes what it lists. Since the length of a range is what it costs, each listing is
// a skip list: about one entry in 128 has a key on level 1 as well, and one in 128
// of those on level 2. Which ones follows from a hash of the last 16 bytes of the
// entry's key. So what is made costs a 127th of a key more, nothing is shared between
// two creations, and a page reads some 128 keys on each level, wherever it stands.
//
// # Events
//
// An event is written in the transaction of the change that it tells of. Those of
// one record that one transaction makes are one key, or, where a request holds changes
// of several records of an owner, share one with others: see Blocks. There is no counter that all of
// them share. <epoch>, eight bytes, is the revision of s/epoch; each request that
// writes events demands that it is still so, all read that key, and about once a second
// one node writes it. So an epoch that was followed by another is sealed: it can't grow,
// and whoever has read it knows all of it. By revision, its keys are in one total order.
//
// <record> is a license's or an order's, or stands for an owner's endpoints, and <sequence>, five bytes, the number of its
// last event in this key. A record has the number of its latest event and the site at which
// it stands, the epoch and the block or none; and
// its events know the site of those before: so a record's history is found from its end.
//
// Blocks: to etcd a change with a key of events costs twice one without, whatever the
// keys hold. A flat request, of which all changes are made or none, so puts
// what it tells of an owner's records into keys for 16 of them each. <block>, four bytes,
// is random, and the request demands that there is no such key. Requests of one change,
// and nested ones, have no blocks.
//
// Events of activations are recorded only for owners that listen: those with a key below
// f/. Each change of a license compares the revision of s/listen, which moves whenever such
// a key is put or removed. A change whose owner's listening has not changed is resent
// unchanged; the others are made anew. No owner moves s/listen. The transaction that stores an
// endpoint writes a request below x/a/, and any node moves s/listen for all owners that
// wait, at most once a second; only then is the change of the endpoint acknowledged.
//
// Events are kept for a time and up to a number of bytes. How old they are is known from
// marks, and how many bytes each owner has from ledgers: sweeps read each event once. The age
// is the same for all owners. Over the budget of bytes, the owner with the most gives up its
// oldest events. A sweep records in s/swept or in the owner's ledger which
// events go, and then removes them: a reader that goes on at or before them gets an error,
// and never misses an event without knowing.
//
// # Deliveries
//
// The feed is the queue. Of an endpoint is stored how far in the feed it is; only what
// has failed has keys of its own, and so has, for a while, what was delivered.
//
// One node delivers to an endpoint at a time: who holds the claim on it. The claim goes
// with a lease, but no lease decides who may write. Each transaction of a holder compares
// the claim's CreateRevision, and writes the progress, whose revision it compares too. So
// who has lost the claim, and a request that was long under way, change nothing. A
// checkpoint that one transaction does not hold is several, in an order in which it may
// be stopped: each carries the progress as it is after it, with the right counts, and the
// place in the feed moves with the last.
//
// A claim, and a replay, also compare the record that the endpoint is in. So nothing is
// written of one that was deleted: while its x/w/ key is there its holder's transactions
// fail, and what there is of it is removed; the key goes last, and the claim with it.
//
// The transaction that reads how far the feed goes, for a page of an endpoint's deliveries,
// reads the record w/<account>/<mode>/ too. All events of the page are of sealed epochs, and
// so are older than this transaction: the record has each change that was acknowledged before
// one of these events was recorded, and decides which events are sent, and where. A holder
// begins with the record that it reads together with the progress, in one transaction.
//
// Scans only find endpoints: after s/webhooks has moved a node reads all owners' records
// again, and then rests 20 times as long as that took, up to a minute. The transaction that
// adds a replay writes the owner's record again, unchanged. By the record's new revision the
// holders of this owner's endpoints, and no others, find out that they must look for replays.
//
// # Values
//
// A value is one byte of format version and a protobuf message written by
// hand (see the codec files). While nodes are updated, an older one reads what
// a newer one wrote: fields of licenses, orders, products and endpoints that it does
// not know are kept as they are when it writes the record back.
//
// Where a value of events can't be read, placeholders take the place of the events in it, see
// eventdecode.go. A newer version's kinds of events, actors and members are stored by name, so an older
// node returns them.
//
// Every change of a license writes its whole value anew, and etcd keeps those
// before it until it compacts. So what most values have in common is left out:
// the prefix of an account id, the text of a ULID or of hex digits for the bytes
// behind it, and the years up to a license's creation from the times that come
// after it. A text that would not come back the same is stored as it is.
//
// # Swaps
//
// A change is one etcd transaction: compare every record's revision, then put;
// else get every record, so that a lost swap brings back what the winner
// wrote. A license's revision guards its devices too, wherever they are kept.
//
// An etcd request whose answer is lost may have been applied, or may be yet.
// Reading does not tell: an old proposal can still commit after the read. So
// the same swap is issued again. If it lands now, the earlier one never can.
// If it loses, the record that comes back tells whose swap it was: a record
// keeps its last eight writers, each with the number of its last swap. Of a
// removal, that the record is gone tells enough.
package kv
