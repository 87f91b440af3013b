package handlers

import (
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// FuzzListCursor: each position has one cursor in a listing. Listings of other owners, and listings
// with other filters, refuse the cursor.
func FuzzListCursor(f *testing.F) {
	listing := func(cursor string, asked ...string) (*pageQuery, error) {
		var c checks
		q := &pageQuery{Cursor: param{value: cursor, given: true}, asked: asked}
		q.checkPage(&c)
		return q, c.err()
	}
	ours := []string{"orders", "acct_a", "test"}
	for _, at := range []store.Position{"x", "ord_VQ01M80QAM0TWZBY6SXWS7SEHE8V", "\x00\xff"} {
		f.Add(*(&pageQuery{asked: ours}).formatCursor(at), "status", "paid")
	}
	f.Add("Ag", "", "")
	f.Add("AgAAAAAAAAAAAA\n", "4:paid", "")
	f.Fuzz(func(t *testing.T, cursor, name, value string) {
		q, err := listing(cursor, ours...)
		if err != nil {
			return
		}
		if q.page.Before == "" || *q.formatCursor(q.page.Before) != cursor {
			t.Errorf("%q is read as %q, which has another cursor", cursor, q.page.Before)
		}
		for _, others := range [][]string{
			{"orders", "acct_b", "test"}, {"orders", "acct_a", "live"}, {"licenses", "acct_a", "test"}, {"orders",
				"acct_a", "test", name, value},
			{"orders", "acct_atest", ""},
		} {
			if _, err := listing(cursor, others...); err == nil {
				t.Errorf("the cursor %q is accepted in the listing %q", cursor, others)
			}
		}
	})
}

// FuzzOverlap: a duration of a fixed length is a period of the same length.
func FuzzOverlap(f *testing.F) {
	for _, seed := range []string{"PT24H", "P4W", "P1DT2H3M4S", "PT0S", "P", "PT", "P1DT", "P1M",
		"PT9999999H9999999M9999999S"} {
		f.Add(seed)
	}
	from := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := parseDuration(text)
		if !ok {
			return
		}
		if d < 0 {
			t.Fatalf("%q is %v", text, d)
		}
		if p, ok := licensing.ParsePeriod(text); ok && p.AddTo(from).Sub(from) != d {
			t.Errorf("%q is %v, and as a period %+v", text, d, p)
		}
	})
}

// FuzzMoment: an accepted timestamp is written as the same time, and is never the zero time.
func FuzzMoment(f *testing.F) {
	for _, seed := range []string{"2030-01-02T03:04:05.678Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00",
		"2031-01-01t00:00:00+14:00", "2030-02-30T00:00:00Z", "2030-01-01T1:00:00Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var c checks
		got := c.moment("expires_at", text{value: in, given: true})
		if c.err() != nil {
			return
		}
		again, err := time.Parse(time.RFC3339, got.Format(timeFormat))
		if got.IsZero() || err != nil || !again.Equal(got) {
			t.Errorf("%q is %v, written as %s: %v", in, got, got.Format(timeFormat), err)
		}
	})
}
