package history

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
	"licet/node/store"
	"licet/receipt"
)

// asksReceipt says which activations and validations ask for a receipt.
func asksReceipt(in input, random *rand.Rand) bool {
	return (in.Action == activate || in.Action == validate) && random.IntN(2) == 0
}

func (in input) receipt() licensing.ReceiptAsk {
	return licensing.AskReceipt(in.Receipt, false, 0)
}

// held is a receipt that a client got; zero: none.
type held struct {
	Revision uint64 `json:",omitempty"`
	Ends     int64  `json:",omitempty"`
}

func heldOf(result *licensing.Result) held {
	if result.Receipt.ExpiresAt.IsZero() {
		return held{}
	}
	return held{result.License.Revision, milli(result.Receipt.ExpiresAt)}
}

// voidedAt is an entry of the list of revocations as one revision wrote it.
type voidedAt struct {
	revision int64
	voids    uint64
}

// noteVoided takes in an entry of the account's list.
func (t *timeline) noteVoided(revision int64, rest string, event *clientv3.Event) error {
	name, ours := strings.CutPrefix(rest, t.account+"/t/")
	if !ours || event.Type == clientv3.EventTypeDelete {
		return nil
	}
	m, err := parse(event.Kv.Value[1:])
	t.voided[name] = append(t.voided[name], voidedAt{revision, m.varints[1]})
	return err
}

// voidedFor returns the entries of a license and of one of its devices.
func (t *timeline) voidedFor(id licensing.LicenseID, device string) []voidedAt {
	all, one := receipt.RevocationName(id.String(), ""), receipt.RevocationName(id.String(), device)
	return slices.Concat(t.voided[string(all[:])], t.voided[string(one[:])])
}

// voids reports whether a change of a license voids the receipts of a device from before.
func (s *licenseAt) voids(after *licenseAt, device string) bool {
	bound, had := s.devices[device]
	now, has := after.devices[device]
	lower := func(from, to int64) bool { return to != 0 && (from == 0 || to < from) }
	return had && (!has || now != bound) || s.suspended != after.suspended && after.suspended != 0 ||
		s.revoked != after.revoked || lower(int64(s.max), int64(after.max)) || lower(s.expires, after.expires) ||
		lower(s.over(), after.over()) || s.reissues != after.reissues || s.product != after.product
}

// over returns when the license ends with its grace; 0: never.
func (s *licenseAt) over() int64 {
	if s.expires == 0 {
		return 0
	}
	return s.expires + s.grace
}

// revocations: the revision that voids a receipt writes an entry for it, and no entry voids a receipt that was asked
// for later. A receipt that ends within the hour may have ended by the clock of a node, as may the lease that it is of;
// a lease that outlasts the hour has not. The doubtful node gives no receipts.
func (i *inspection) revocations(t *timeline, key licensing.LicenseKey, states []*licenseAt, ops []operation) {
	latest := i.run.started.Add(time.Hour).UnixMilli() // by any clock
	for _, op := range ops {
		if op.Held.Revision == 0 {
			continue
		}
		if op.Out.Doubt {
			i.add("doubt", "%s: a node gave the receipt %+v by a clock in doubt", key, op.Held)
		}
		device := i.run.deviceOf(op)
		entries := t.voidedFor(key.ID(), device)
		for _, e := range entries {
			if e.revision <= op.Before && e.voids >= op.Held.Revision {
				i.add("revocations", "%s: the receipt %+v was void from the start: %+v", key, op.Held, e)
			}
		}
		for n, s := range states[1:] {
			if s.revision <= op.After || op.Held.Ends < latest || !states[n].voids(s, device) {
				continue
			}
			if !slices.ContainsFunc(entries, func(e voidedAt) bool {
				return e.revision == s.revision && e.voids >= op.Held.Revision
			}) {
				i.add("revocations", "%s: the receipt %+v of %s is not in the list: %s", key, op.Held, device, s)
			}
		}
	}
}

// unlistedReceipts leaves out some of the entries.
func unlistedReceipts(writes []store.Write) {
	if rand.IntN(4) == 0 {
		for i := range writes {
			writes[i].Record.Revocations = nil
		}
	}
}

// undatedReceipts stores that no receipt of a license is valid after the day on which the license was issued.
func undatedReceipts(writes []store.Write) {
	for i := range writes {
		if l := writes[i].Record.License; l != nil && l.ReceiptsUntil != 0 {
			undated := *l
			undated.ReceiptsUntil = licensing.ReceiptDayOf(l.CreatedAt)
			writes[i].Record.License = &undated
		}
	}
}

// greedyReceipts voids the next receipts, too.
func greedyReceipts(writes []store.Write) {
	for i := range writes {
		r := &writes[i].Record
		r.Revocations = slices.Clone(r.Revocations)
		for n := range r.Revocations {
			r.Revocations[n].Revision = r.License.Revision
		}
	}
}
