// Package kv keeps records in etcd. It implements store.Store, and no etcd type
// leaves it. The keys and the values are those of kv/internal/layout.
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
// <record> is a license's or an order's, or stands for an owner's endpoints, and <sequence>, five bytes, the number
// of its last event in this key. A record has the number of its latest event and the location at which it stands, the
// epoch and the block or none; and its events know the location of those before: so a record's history is found from its
// end.
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
//
// # Files
//
//	store.go         Store and its parts; opening and closing
//	commit.go        Commit: one change, until its outcome is known
//	swap.go          a change as one etcd transaction
//	webhooks.go      the part of a swap that writes endpoints
//	eventwrite.go    the events of a swap, and events of several records in one key
//	load.go          Load and Confirm: records and their tokens
//	devices.go       licenses with their devices, written and read
//	memory.go        what the store remembers of licenses; Recall
//	devicecache.go   what the store remembers of devices with keys of their own
//	devicescan.go    finding out all devices of a license, in the background
//	fingerprints.go  devices that were bound, about
//	batcher.go       callers share a request
//	packer.go        which callers may share a request
//	batchwrites.go   sending changes
//	batchreads.go    sending reads and checks
//	fences.go        epochs and the owners that listen, compared by each request
//	listening.go     which owners listen to activations
//	listenmove.go    changing which owners listen
//	eventowners.go   the owners of events
//	feed.go          feeds: pages of an owner's events
//	directory.go     the keys of an owner's events, in the feed's order
//	eventlookup.go   one event, by its id
//	history.go       the events of one record
//	eventsweep.go    removing old events
//	eventmarks.go    how old events are, and how many bytes each owner has
//	eventbudget.go   removing events beyond the budget
//	listings.go      pages of licenses, orders, products and API keys
//	skiplist.go      reading a listing from its end
//	sweeps.go        what is due, and old claims
//	apikeys.go       API keys
//	apikeychange.go  changes of API keys, one at a time
//	apikeymarks.go   marks that move when API keys change
//	keyuse.go        when API keys were used last
//	masters.go       master keys in use
//	retire.go        what is derived from a master key; retiring one
//	nodes.go         registrations of nodes
//	counts.go        metrics of swaps and batches
//	trace.go         spans of swaps and batches
//	badvalues.go     values that can't be read, and licenses that break a rule
package kv
