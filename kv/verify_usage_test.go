package kv

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
)

// TestVerifyNotesUsage plants usage records that differ from what an owner stores. Verify lists the records that differ
// by more than nodes explain, and reports no violation.
func TestVerifyNotesUsage(t *testing.T) {
	l := newLab(t)
	l.fill()
	stored := l.usage(labOwner)
	for name, c := range map[string]struct {
		off  licensing.Size
		want bool
	}{
		"equal":                {licensing.Size{}, false},
		"some seconds behind":  {licensing.Size{Bytes: -stored.Bytes, Keys: -stored.Keys}, false},
		"64 MiB more":          {licensing.Size{Bytes: 64 << 20}, false},
		"more than 64 MiB":     {licensing.Size{Bytes: 64<<20 + 1}, true},
		"more than a lot less": {licensing.Size{Bytes: -stored.Bytes - 1}, true}, // below zero
		"100,000 keys more":    {licensing.Size{Keys: 100_000}, false},
		"too many keys":        {licensing.Size{Keys: 100_001}, true},
		"keys below zero":      {licensing.Size{Keys: -stored.Keys - 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := stored.Plus(c.off)
			defer l.plant(usageSeed(labOwner, recorded))()
			summary, found := l.verify(verify.Config{})
			var want []verify.UsageDrift
			if c.want {
				want = []verify.UsageDrift{{Owner: labOwner, Recorded: recorded, Counted: stored}}
			}
			if diff := cmp.Diff(want, summary.Drifts); diff != "" || int(summary.Drifted) != len(want) ||
				len(found) > 0 {
				t.Errorf("%d drifts (-want +got):\n%s\nviolations: %v", summary.Drifted, diff, found)
			}
		})
	}

	// An owner that stores nothing any more has a record too.
	gone := licensing.Owner{AccountID: "acct_gone", Mode: licensing.Live}
	l.plant(usageSeed(gone, licensing.Size{Keys: 1 << 20}))
	summary, found := l.verify(verify.Config{})
	if len(summary.Drifts) != 1 || summary.Drifts[0].Owner != gone || len(found) > 0 {
		t.Errorf("%+v, violations: %v", summary.Drifts, found)
	}
}

// usageSeed is a usage record that says how much an owner stores.
func usageSeed(owner licensing.Owner, size licensing.Size) seed {
	return seed{keyspace.UsageKey(owner): (&layout.Usage{Usage: licensing.Usage{Size: size}}).Encode()}
}

// usage returns how much an owner stores.
func (l *lab) usage(owner licensing.Owner) licensing.Size {
	l.t.Helper()
	at, err := l.client.Get(l.ctx(), keyspace.CheckKey)
	if err != nil {
		l.t.Fatal(err)
	}
	sizes, err := verify.Sizes(l.ctx(), l.store, at.Header.Revision, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	return sizes[owner]
}
