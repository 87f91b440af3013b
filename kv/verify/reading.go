package verify

import (
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
)

// reading reads a store at one revision, looks keys up, and counts keys and violations. All checks of one
// verification share a reading.
type reading struct {
	kv       clientv3.KV // not counted, and with deadlines of its own
	cfg      Config
	revision int64
	checkKey bool          // the store has a check key, valid or not
	idKey    bool          // the store has an id key, valid or not
	moved    int64         // requests to listen written up to this revision are in effect
	paged    bool          // this etcd can't stream
	rest     time.Duration // after each page
	lookups  []lookup
	summary  Summary
	slots    []licensing.Slot // in use, in their order
	places   map[string]int   // the index of each prefix's family in summary.Families
}

// apart returns a reading of the same store at the same revision that counts and reports for itself.
func (v *reading) apart() *reading {
	return &reading{
		kv: v.kv, revision: v.revision, cfg: Config{PageSize: v.cfg.PageSize}, paged: v.paged, slots: v.slots,
		summary: Summary{Families: make([]FamilyCount, 1)},
	}
}

// report passes a violation on. Texts must not show a secret: see [Opaque].
func (v *reading) report(family, key, rule, format string, args ...any) {
	v.summary.Violations++
	if v.cfg.Report != nil {
		v.cfg.Report(Violation{Family: family, Key: key, Rule: rule, Problem: fmt.Sprintf(format, args...)})
	}
}
