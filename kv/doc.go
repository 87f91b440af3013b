// Package kv keeps records in etcd. It implements store.Store, and no etcd type leaves it. Package
// kv/internal/keyspace defines the keys, and package kv/internal/layout the values.
//
// An owner is an account in one mode, live or test. All keys of an owner are in one slot of 1,024, so every transaction
// that changes records has its keys in one slot. A record is a license, an order, a product, the webhook endpoints
// of an owner, or the claim of an Idempotency-Key.
//
// # Swaps
//
// A change is one etcd transaction, a swap: compare the revision of every record, then put; else get every record, so
// that a lost swap brings back what the winner wrote. The revision of a license guards its devices too, in whichever
// keys they are.
//
// If the answer of an etcd request is lost, etcd may have applied the request, or may still apply it. A read does not
// tell: an old proposal can commit after the read. So the store sends the same swap again. If the new swap lands, the
// earlier one never can. If the new swap loses, the record that comes back shows whose swap won: a record keeps its
// last eight writers, each with the number of its last swap. After a removal, the missing record shows enough.
//
// # Listings
//
// A listing is read from its end, page by page. Its keys sort by time: by milliseconds, or by the time at the beginning
// of a ULID. The transaction that creates a record also writes the entry of the listing. etcd's cost of a range grows
// with the length of the range, so each listing is a skip list: about one entry in 128 also has a key on level 1, and
// one in 128 of these has a key on level 2. A hash of the last 16 bytes of the entry's key selects these entries. So a
// new record costs 1/127 of a key more, two creations share no key, and a page reads about 128 keys on each level, at
// any place in the listing.
//
// # Events
//
// The transaction of a change also writes the events of the change. Events of one record in one transaction share a
// key. If a request has changes of several records of one owner, their events share a key too: see Blocks. Requests
// share no counter. The revision of cell/epoch is the epoch of an event, eight bytes in its key. Each request that
// writes events compares this revision; all requests read cell/epoch, and about once a second one node writes it. So
// once a later epoch has begun, an epoch can't grow any more: it is closed, and a reader that has read it knows all its
// events. By revision, the keys of an epoch are in one total order.
//
// The key of an event names its record (a license, an order, or the endpoints of an owner) and the number of the last
// event in the key, five bytes. A record has the number of its latest event and that event's location: the epoch, and
// the block or none. Each event knows the location of the event before it. So the history of a record is read from its
// end.
//
// Blocks: a change that writes a key of events costs etcd twice as much as a change that does not, whatever the keys
// contain. So a flat request, of which etcd applies all changes or none, puts the events of 16 records of one owner
// into one key. The number of a block, four bytes, is random; the request compares that there is no such key. Requests
// of one change, and nested requests, have no blocks.
//
// Events of activations are recorded only for owners that listen: owners with a key below cell/f/. Each change of a
// license compares the revision of cell/listen, the fence, which moves whenever such a key is put or removed. After a
// move, the changes of owners that began or stopped to listen count as lost, and the store sends the changes of other
// owners again unchanged. No owner moves the fence. The transaction that stores an endpoint also writes a request below
// cell/a/. Any node moves the fence for all waiting owners, at most once a second, and the store acknowledges the
// change of the endpoint only then.
//
// Events are kept up to an age and up to a number of bytes. Marks tell how old events are, and ledgers how many bytes
// each owner has, so sweeps read each event once. The age is the same for all owners. Over the budget of bytes, the
// owner with the most bytes loses its oldest events. A sweep first records in cell/swept, or in the owner's ledger,
// which events it will remove, and then removes them. A reader that resumes at or before these events gets an error, so
// it never misses an event without knowing.
//
// # Deliveries
//
// The feed of an owner is the queue of the owner's webhook endpoints. For each endpoint the store keeps a position in
// the feed. Only failed messages have keys of their own and, for some days, delivered messages. Package kv/deliveries
// stores all this.
//
// One worker delivers to an endpoint at a time: the worker that holds the lease on the endpoint. The lease is a key
// that ends with the worker's etcd lease, but time does not decide which worker may write. Each transaction of a holder
// compares the CreateRevision of the lease, and compares and writes the progress. So a worker that has lost its lease
// changes nothing, and neither does a request that was on its way for long. If a checkpoint does not fit into one
// transaction, the checkpoint becomes several transactions, in an order that may stop after any of them: each writes
// the progress with the right counts, and the last one moves the position in the feed.
//
// A new lease, and a replay, also compare the owner's record of endpoints. So nothing is written for a deleted
// endpoint: as long as its x/w/ key exists, transactions of its holder fail and sweeps remove its keys. The x/w/ key
// goes last, with the lease.
//
// The transaction that reads the end of the feed, for a page of an endpoint, also reads the owner's record
// w/<account>/<mode>/. All events of the page are in closed epochs, so they are older than this transaction. So the
// record has each change that was acknowledged before one of these events was recorded, and the record decides which
// events are sent, and where. A holder begins with the record that it reads together with the progress.
//
// Scans only find endpoints. After cell/webhooks has moved, a node reads the endpoints of all owners again, and then
// rests 20 times as long as the scan took, up to a minute. The transaction that adds a replay writes the owner's record
// again, unchanged: the new revision tells the holders of this owner's endpoints, and no others, to look for replays.
//
// # Packages below
//
//	kv/deliveries           deliveries to webhook endpoints: leases, progress, messages, replays
//	kv/verify               licet store verify: all checks of a whole store, key by key, and the rules that they name
//	kv/backup               backups, restores and defragmentation of a store
//	kv/survey               the facts about etcd and the store for licet doctor
//	kv/users                users of etcd and their roles
//	kv/embedded             an etcd in the process of licet dev
//	kv/internal/layout      values, and events, as bytes; no requests
//	kv/internal/keyspace    the keys of etcd; no requests
//	kv/internal/etcd        the etcd client: members, failures, and the counted ways to ask
//	kv/internal/claimwrite  the claim of an Idempotency-Key in the transaction of another record
//	kv/internal/kvtest      what tests of these packages share
//
// Which package has a line about a stored value: kv/internal/keyspace names its key, kv/internal/layout encodes and
// decodes it, kv reads and writes it for a node, kv/verify checks it against all other keys. kv/deliveries does all
// that kv does for the keys below v/ and cell/g/. What a value means, and which change is legal, is in package
// licensing; when a change runs, in package node. Flags and output of licet store are in package cmd/licet.
//
// The tests here run on a real etcd, some of them with requests that fail or are applied late. The tests of kv/verify
// are here too (verify_*_test.go): they damage stores that kv has written.
//
// # Files
//
//	store.go          Config; Store and its parts; opening and closing
//	commit.go         Commit: one change, until its outcome is known
//	swap.go           a change as one etcd transaction
//	swapparts.go      the parts of a swap that write webhook endpoints, receipt keys and trials
//	revocations.go    the part of a swap that writes which receipts are void; reading and sweeping these
//	eventwrite.go     the events of a swap, and events of several records in one key
//	load.go           Load and Confirm: records and their tokens
//	devices.go        licenses with their devices, written and read
//	leases.go         the leases of a license, and which of them have lapsed
//	memory.go         what the store remembers of licenses; Recall
//	devicecache.go    what the store remembers of devices with keys of their own
//	devicescan.go     reading all devices of a license in the background, for the cache of devices
//	fingerprints.go   devices that were bound, about
//	batcher.go        callers share a request
//	packer.go         which callers may share a request
//	batchwrites.go    sending changes
//	batchreads.go     sending reads and checks
//	fences.go         epochs and the owners that listen, compared by each request
//	listening.go      which owners listen to activations
//	listenmove.go     changing which owners listen
//	epochclose.go     closing epochs, so that events appear in feeds
//	owners.go         the owners, the slots in use, and the map from slots to cells
//	feed.go           feeds: pages of an owner's events
//	directory.go      the keys of an owner's events, in the feed's order; one event, by its id
//	history.go        the events of one record
//	eventsweep.go     removing old events
//	eventmarks.go     how old events are, and how many bytes each owner has
//	eventbudget.go    removing events beyond the budget
//	listings.go       pages of licenses, orders, products and API keys
//	skiplist.go       reading a listing from its end
//	sales.go          payments and refunds by time; an order's payments; how far providers' events are read
//	sweeps.go         what is due, and old claims; compacting etcd's history early
//	apikeys.go        API keys, and when they were used last
//	apikeychange.go   changes of API keys, one at a time; marks that move when API keys change
//	masters.go        which master keys are in use; the id key, sealed under a master key
//	retire.go         MasterUsage: which keys and endpoints need a master key; retiring a master key
//	nodes.go          registrations of nodes, and their stamps, which package node/clocks compares
//	recount.go        how much owners store: the growth of each change, and recounts
//	counts.go         counts swaps, events, values that can't be read, and licenses that break a rule
package kv
