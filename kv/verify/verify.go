package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
)

// Violation is one place where a store contradicts itself.
type Violation struct {
	Family  string `json:"family"`  // the kind of key
	Key     string `json:"key"`     // which one, in a printable form
	Rule    string `json:"rule"`    // the violated rule, as a fixed word
	Problem string `json:"problem"` // the same in a sentence
}

// Config says how to verify. With the zero value, Run only returns the summary.
type Config struct {
	// Report is called for each violation, one at a time.
	Report func(Violation)
	// Progress is called now and then with the number of keys read so far.
	Progress func(keys int64)
	// Keys checks the ids of licenses; nil: without the id key of the store, ids and the licenses of grants are not
	// checked.
	Keys *keyring.LicenseKeys

	// PageSize is how many keys one request reads if etcd can't stream; 0: 500.
	PageSize int
}

// Summary is what was read and found.
type Summary struct {
	Revision   int64         // of the store, at which all was read
	Families   []FamilyCount // in the order of their keys
	Keys       int64         // of all families
	OtherKeys  int64         // that are not this service's, and were not looked at
	Violations int64
	IDs        bool         // Config had Keys
	Drifts     []UsageDrift // the first ones, in the order of their accounts
	Drifted    int64        // all usage records that differ
	Duration   time.Duration
}

// FamilyCount is how many keys of a kind there are.
type FamilyCount struct {
	Name string
	Keys int64
}

// ErrCompacted means that the store's history was compacted during the verification, so that the rest can't be read
// at the same revision.
var ErrCompacted = errors.New("the history was compacted while the store was being read; run it again, or keep " +
	"history for longer")

// Store is a store in etcd.
type Store interface{ Client() *etcd.Client }

// verifyTries bounds how often a verification starts over after a compaction.
const verifyTries = 3

// Run reads the whole store at one revision and proves that the store does not contradict itself. Run keeps a bounded
// part of the store and a few bytes for each owner in memory, takes no lock and changes nothing; other processes may
// write meanwhile.
//
// If etcd compacts the history meanwhile, Run starts over, unless it has reported a violation already: then Run fails
// with [ErrCompacted].
func Run(ctx context.Context, s Store, cfg Config) (Summary, error) {
	started := time.Now()
	var v *verification
	var err error
	for range verifyTries {
		v = newVerification(s.Client().KV, cfg)
		err = v.run(ctx)
		if !errors.Is(err, rpctypes.ErrCompacted) || v.summary.Violations > 0 {
			break
		}
	}
	v.summary.Duration, v.summary.IDs = time.Since(started), cfg.Keys != nil
	return v.summary, explain(ctx, err)
}

// explain returns the error of a reading for the caller.
func explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return ErrCompacted
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("read the store: %w", err)
	}
	return err
}

// CountKeys counts the keys that a verification will read. etcd walks over all of these keys.
func CountKeys(ctx context.Context, s Store) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := s.Client().KV.Get(ctx, keyspace.Prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("count the keys: %w", err)
	}
	return response.Count, nil
}

// family is one kind of key: all keys that begin with a prefix.
type family struct {
	name   string
	prefix string // below the layout's, and below the slot unless the family is the cell's
	// check reads the family and reports what is wrong with it. It is nil if the check of another family also reads
	// this family.
	check func(context.Context) error
}

// families returns every kind of key, in the order of their prefixes. Keys below cell/ are the cell's; all other keys
// are in slots. A new kind needs a row here or in [keyspace.DueIndexes]: otherwise its keys are unknown, which is a
// violation.
func (v *verification) families() []family {
	families := []family{
		{"api_key_index", "a/", v.each("a/", v.keys.checkAPIKeyIndex)},
		{"buyer", "b/", v.each("b/", v.listings.checkBuyer)},
		{"catalog", "c/", v.each("c/", v.listings.checkCatalog)},
		{"listen_request", "cell/a/", v.each("cell/a/", v.webhooks.checkListenRequest)},
		{"backup", "cell/backup", v.each("cell/backup", v.records.checkBackup)},
		{"books", "cell/books", v.each("cell/books", v.records.checkBooks)},
		{"check_key", "cell/check", v.each("cell/check", v.records.checkCheckKey)},
		{"epoch", "cell/epoch", v.each("cell/epoch", v.events.checkEpoch)},
		{"listener", "cell/f/", v.each("cell/f/", v.webhooks.checkListener)},
		{"delivery_lease", "cell/g/", v.each("cell/g/", v.webhooks.checkDeliveryLease)},
		{"id_key", "cell/id_key", v.each("cell/id_key", v.keys.checkIDKey)},
		{"api_key_mark", "cell/keys", v.each("cell/keys", v.keys.checkAPIKeysMark)},
		{"listen_fence", "cell/listen", v.each("cell/listen", v.webhooks.checkListenFence)},
		{"slot_map", "cell/map", v.each("cell/map", v.records.checkSlotMap)},
		{"master_key", "cell/master/", v.each("cell/master/", v.keys.checkMasterKey)},
		{"node", "cell/n/", v.each("cell/n/", v.records.checkNode)},
		{"provider_events", "cell/pe/", v.each("cell/pe/", v.records.checkProviderEvents)},
		{"receipts_mark", keyspace.ReceiptKeysMark[len(keyspace.Prefix):],
			v.each(keyspace.ReceiptKeysMark[len(keyspace.Prefix):], v.keys.checkReceiptsMark)},
		{"recount", "cell/recount", v.each("cell/recount", v.records.checkRecount)},
		{"retired_master_key", "cell/retired/", v.each("cell/retired/", v.keys.checkRetiredMaster)},
		{"slot", "cell/s/", v.each("cell/s/", v.records.checkSlot)},
		{"swept_events", "cell/swept", v.each("cell/swept", v.events.checkTrimmed)},
		{"event_mark", "cell/t/", v.each("cell/t/", v.events.checkMark)},
		{"webhooks_mark", "cell/webhooks", v.each("cell/webhooks", v.webhooks.checkWebhooksMark)},
		{"device", "d/", nil},
		{"event", "e/", v.each("e/", v.events.checkEvents)},
		{"settings", "f/", v.each("f/", v.records.checkSettings)},
		{"customer", keyspace.CustomersFamily, v.each(keyspace.CustomersFamily, v.listings.checkCustomer)},
		{"owner", "h/", v.each("h/", v.events.checkOwner)},
		{"listing", "i/", v.each("i/", v.listings.checkListing)},
		{"skip", "j/", v.each("j/", v.listings.checkSkip)},
		{"api_key", "k/", v.each("k/", v.keys.checkAPIKey)},
		{"license", "l/", v.licenses.checkLicenses}, // with devices and metadata
		{"metadata", "m/", nil},
		{"alias", "n/", v.each("n/", v.licenses.checkAlias)},
		{"order", "o/", v.orders.checkOrders}, // with the listings of their payments
		{"order_owner", "p/", v.each("p/", v.orders.checkOrderOwner)},
		{"payment", keyspace.PaymentsFamily, v.each(keyspace.PaymentsFamily, v.orders.checkPaymentRecord)},
		{"sale", keyspace.SalesFamily, v.each(keyspace.SalesFamily, v.listings.checkSale)},
		{"payment_listing", keyspace.PaymentListings, nil},
		{"product", "q/", v.each("q/", v.records.checkProduct)},
		{"event_ledger", "r/", v.each("r/", v.events.checkEventLedger)},
		{"usage", "s/", v.each("s/", v.records.checkUsage)},
		{"sandbox", keyspace.SandboxFamily, v.each(keyspace.SandboxFamily, v.records.checkSandbox)},
		{"terms", keyspace.TermsFamily, v.each(keyspace.TermsFamily, v.records.checkTerms)},
		{"trial", keyspace.TrialsFamily, v.each(keyspace.TrialsFamily, v.licenses.checkTrial)},
		{"api_key_use", "u/", v.each("u/", v.keys.checkAPIKeyUse)},
		{"delivery", "v/", v.webhooks.checkDeliveries},
		{"webhooks", "w/", v.each("w/", v.webhooks.checkWebhooks)},
		{"receipt_keys", keyspace.ReceiptKeysFamily, v.each(keyspace.ReceiptKeysFamily, v.keys.checkReceiptKeys)},
		{"revocation", keyspace.RevocationsFamily, v.each(keyspace.RevocationsFamily, v.records.checkRevocation)},
		{"deleted_webhook", "x/w/", v.each("x/w/", v.webhooks.checkDeletedWebhook)},
		{"claim", "y/", v.each("y/", v.claims.checkClaim)},
		{"claim_age", "z/", v.each("z/", v.claims.checkClaimAge)},
	}
	for x := range keyspace.DueIndexes() {
		families = append(families, family{x.Name, x.Family, v.each(x.Family, v.listings.checkDue(x))})
	}
	slices.SortFunc(families, func(a, b family) int { return strings.Compare(a.prefix, b.prefix) })
	return families
}

// Prefixes returns the prefixes of all kinds of keys in their order, as families do. Only tests of package kv call it:
// they find kinds of keys that licet store verify would miss.
func Prefixes() []string {
	var prefixes []string
	for _, f := range newVerification(nil, Config{}).families() {
		prefixes = append(prefixes, f.prefix)
	}
	return prefixes
}

// each returns the check of a family that checks one key at a time.
func (v *verification) each(prefix string, one func(entry)) func(context.Context) error {
	return func(ctx context.Context) error {
		keys := v.stream(prefix)
		defer keys.close()
		for {
			e, more, err := keys.next(ctx)
			if err != nil || !more {
				return errors.Join(err, v.lookUp(ctx, 0))
			}
			one(e)
			if err := v.lookUp(ctx, lookupBatch); err != nil {
				return err
			}
		}
	}
}

// verification checks one reading of a store: the checks of each group of families share the reading. Only one
// goroutine uses a verification.
type verification struct {
	*reading
	licenses licenseChecks
	orders   orderChecks
	records  recordChecks
	listings listingChecks
	claims   claimChecks
	keys     keyChecks
	events   eventChecks
	webhooks webhookChecks
}

// newVerification returns a verification that has read nothing yet.
func newVerification(kv clientv3.KV, cfg Config) *verification {
	v := &verification{reading: &reading{kv: kv, cfg: cfg, places: map[string]int{}}}
	v.listings, v.claims, v.keys = listingChecks{v.reading}, claimChecks{v.reading}, keyChecks{v.reading}
	v.events.reading = v.reading
	settings, ofMany := make(map[licensing.Owner]licensing.Settings), make(map[string]int)
	v.licenses = licenseChecks{reading: v.reading, events: &v.events, ofMany: ofMany, settings: settings}
	v.orders = orderChecks{reading: v.reading, events: &v.events, ofMany: ofMany}
	v.records = recordChecks{reading: v.reading, events: &v.events, settings: settings,
		usages: make(map[licensing.Owner]licensing.Size)}
	v.webhooks = webhookChecks{reading: v.reading, events: &v.events, keys: &v.keys}
	return v
}

func (v *verification) run(ctx context.Context) error {
	if err := v.begin(ctx); err != nil {
		return err
	}
	if err := v.readSlots(ctx); err != nil {
		return err
	}
	if err := v.events.readCuts(ctx); err != nil {
		return err
	}
	for i, f := range v.families() {
		v.places[f.prefix] = i
		v.summary.Families = append(v.summary.Families, FamilyCount{Name: f.name})
	}
	for _, f := range v.families() {
		if f.check == nil {
			continue
		}
		if err := f.check(ctx); err != nil {
			return err
		}
	}
	if err := v.findUnknown(ctx); err != nil {
		return err
	}
	v.events.checkLinks()
	if err := v.records.compareUsage(ctx); err != nil {
		return err
	}
	return v.countOthers(ctx)
}

// begin fixes the revision. At that revision it reads the current epoch and the trimmed epoch, and whether there are a
// check key and an id key.
func (v *verification) begin(ctx context.Context) error {
	return v.retry(ctx, func(ctx context.Context) error {
		response, err := v.kv.Txn(ctx).Then(clientv3.OpGet(keyspace.CheckKey), clientv3.OpGet(keyspace.EpochKey),
			clientv3.OpGet(keyspace.TrimmedKey), clientv3.OpGet(keyspace.ListenKey),
			clientv3.OpGet(keyspace.IDKeyKey)).Commit()
		if err != nil {
			return err
		}
		v.revision = response.Header.Revision
		v.summary.Revision = v.revision
		v.checkKey = etcd.First(response.Responses, 0) != nil
		v.idKey = etcd.First(response.Responses, 4) != nil
		if kv := etcd.First(response.Responses, 3); kv != nil {
			fence, _ := layout.DecodeListenFence(kv.Value) // an error is reported with the key
			v.moved = fence.Moved
		}
		v.events.beginEvents(etcd.First(response.Responses, 1), etcd.First(response.Responses, 2))
		return nil
	})
}

// checkUnknown reports the keys in a range that no family covers, one
// violation for each prefix.
func (v *verification) checkUnknown(ctx context.Context, from, to string) error {
	for from < to {
		var kind string
		var found int64
		err := v.retry(ctx, func(ctx context.Context) error {
			first, err := v.kv.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(1),
				clientv3.WithKeysOnly(), clientv3.WithRev(v.revision))
			if err != nil || len(first.Kvs) == 0 {
				return err
			}
			kind = v.kindOf(string(first.Kvs[0].Key))
			end := min(clientv3.GetPrefixRangeEnd(kind), to)
			all, err := v.kv.Get(ctx, string(first.Kvs[0].Key), clientv3.WithRange(end),
				clientv3.WithCountOnly(), clientv3.WithRev(v.revision))
			if err == nil {
				found, from = all.Count, end
			}
			return err
		})
		if err != nil || kind == "" {
			return err
		}
		v.summary.Keys += found
		v.report("unknown", strconv.Quote(kind), "unknown_family",
			"%d keys are of a kind that this build does not know", found)
	}
	return nil
}

// maxKind bounds the shown part of a key of unknown kind.
const maxKind = len(keyspace.Prefix) + len("00/") + 16

// kindOf returns the beginning of a key up to the slash after its family, or a bounded part of the key: the rest may be
// a secret. Of a key in a slot that is not in use, it returns the slot.
func (v *verification) kindOf(key string) string {
	rest := key[len(keyspace.Prefix):]
	if slot, path, ok := keyspace.CutSlot(key); ok {
		if rest = path; !slices.Contains(v.slots, slot) {
			return keyspace.InSlot(slot, "")
		}
	}
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		key = key[:len(key)-len(rest)+slash+1]
	}
	return key[:min(len(key), maxKind)]
}

// countOthers counts the keys before and behind this service's keys: they belong to another program or to another
// layout. If etcd's permissions forbid reading them, the count is 0.
func (v *verification) countOthers(ctx context.Context) error {
	end := clientv3.GetPrefixRangeEnd(keyspace.Prefix)
	for _, other := range [][2]string{{"\x00", keyspace.Prefix}, {end, "\x00"}} {
		err := v.retry(ctx, func(ctx context.Context) error {
			response, err := v.kv.Get(ctx, other[0], clientv3.WithRange(other[1]),
				clientv3.WithCountOnly(), clientv3.WithRev(v.revision))
			if err == nil {
				v.summary.OtherKeys += response.Count
			}
			return err
		})
		if err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) {
			return err
		}
	}
	return nil
}
