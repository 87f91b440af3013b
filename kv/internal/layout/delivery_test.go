package layout

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

func goldenProgress() *Progress {
	return &Progress{
		Progress: store.DeliveryProgress{
			Place: "evt_001", Pending: 2, Dead: 300, SeenAt: kvtest.Time, Failures: 5,
			FailingSince: kvtest.Time.Add(time.Second), SinceInDoubt: true,
			NextProbe: kvtest.Time.Add(2 * time.Second), LastSuccess: kvtest.Time.Add(3 * time.Second),
			SkippedAt: kvtest.Time.Add(4 * time.Second), Behind: true,
		},
		Owner: kvtest.Owner, Number: 400, Begun: true, Log: DeliveryLog{First: 7, Counts: []int{1, 200, 3}},
	}
}

// goldenPage has two answers, one of them twice.
func goldenPage() []store.Delivery {
	page := make([]store.Delivery, 3)
	for i := range page {
		page[i] = kvtest.Delivery()
		page[i].EventID, page[i].Status, page[i].Next = fmt.Sprintf("evt_00%d", i), store.DeliveryDelivered, time.Time{}
	}
	page[1].Answer, page[2].Attempts = "ok", page[2].Attempts[:1]
	return page
}

func TestGoldenDeliveries(t *testing.T) {
	var b strings.Builder
	show := func(name string, value []byte) { fmt.Fprintf(&b, "%s\n%s\n", name, hex.Dump(value)) }
	delivery, replay := kvtest.Delivery(), kvtest.Replay()
	show("progress of an endpoint", goldenProgress().Encode())
	show("pending message", EncodeDelivery(&delivery))
	show("replay", EncodeReplay(kvtest.Owner, &replay))
	show("page of the log", encodePage(goldenPage(), maxAnswer))
	golden(t, "deliveries.golden", b.String())
}

func sameDelivery(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Progress{}, DeliveryLog{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeliveryRoundTrip(t *testing.T) {
	progress := goldenProgress()
	progress.unknown = appendString(nil, 99, "of a newer node")
	sameDelivery(t, kvtest.Must(DecodeProgress(progress.Encode()))(t), progress)
	sameDelivery(t, kvtest.Must(DecodeProgress((&Progress{Owner: kvtest.Owner}).Encode()))(t),
		&Progress{Owner: kvtest.Owner})
	delivery := kvtest.Delivery()
	sameDelivery(t, kvtest.Must(DecodeDelivery(delivery.EventID, delivery.Status, EncodeDelivery(&delivery)))(t),
		delivery)
	for _, replay := range []store.Replay{kvtest.Replay(), {ID: "1", EventID: "evt_1"}, {ID: "2", Dead: true}} {
		owner, got, err := DecodeReplay(replay.ID, EncodeReplay(kvtest.Owner, &replay))
		if err != nil || owner != kvtest.Owner {
			t.Fatal(owner, err)
		}
		sameDelivery(t, got, replay)
	}
	sameDelivery(t, kvtest.Must(DecodePage(encodePage(goldenPage(), maxAnswer)))(t), goldenPage())
}

// TestBrokenDeliveries refuses what can't be meant.
func TestBrokenDeliveries(t *testing.T) {
	owner := appendOwner([]byte{formatVersion}, 1, kvtest.Owner)
	for name, value := range map[string][]byte{
		"no owner":              {formatVersion},
		"a newer format":        {2},
		"pages that are none":   appendBytes(owner, 15, []byte{0}),
		"a page without end":    appendBytes(owner, 15, []byte{0x80}),
		"fewer than none":       appendUint(owner, 4, 1<<63),
		"a number that is text": appendString(owner, 5, "7"),
	} {
		if got, err := DecodeProgress(value); err == nil {
			t.Errorf("progress, %s: %+v", name, got)
		}
	}
	for name, value := range map[string][]byte{
		"an answer that is not there": appendBytes([]byte{formatVersion}, pageDelivery,
			appendUint(appendString(nil, 1, "evt_1"), 4, 1)),
		"no event": appendBytes([]byte{formatVersion}, pageDelivery, nil),
	} {
		if got, err := DecodePage(value); err == nil {
			t.Errorf("page, %s: %+v", name, got)
		}
	}
	if got, err := DecodeDelivery("evt_1", store.DeliveryDead,
		appendBytes([]byte{formatVersion}, 2, appendUint(nil, 2, 1<<62))); err == nil {
		t.Errorf("an attempt of %v", got.Attempts[0].Duration)
	}
}

// TestStoredDeliveries checks the bounds on stored data of receivers' responses.
func TestStoredDeliveries(t *testing.T) {
	d := kvtest.Delivery()
	d.Answer = strings.Repeat("x", maxAnswer-1) + "é" + strings.Repeat("y", maxAnswer)
	for i := range 2 * maxAttempts {
		d.Attempts = append(d.Attempts,
			store.DeliveryAttempt{At: kvtest.Time.Add(time.Duration(i) * time.Hour), Status: 500})
	}
	got := kvtest.Must(DecodeDelivery(d.EventID, d.Status, EncodeDelivery(&d)))(t)
	if got.Answer != d.Answer[:maxAnswer-1] {
		t.Errorf("of the answer are kept %d bytes", len(got.Answer))
	}
	sameDelivery(t, got.Attempts, d.Attempts[len(d.Attempts)-maxAttempts:])
}

// TestPagesAreBounded: answers are cut before a page gets too large, and there are more
// pages only where that is not enough.
func TestPagesAreBounded(t *testing.T) {
	messages := func(count, answer, attempts int) (all []store.Delivery) {
		for i := range count {
			d := kvtest.Delivery()
			d.EventID, d.Answer, d.Attempts = fmt.Sprintf("evt_%036d", i), fmt.Sprintf("%06d%s", i,
				strings.Repeat("x", answer)), nil
			for range attempts {
				d.Attempts = append(d.Attempts,
					store.DeliveryAttempt{At: kvtest.Time, Failure: strings.Repeat("f", 20)})
			}
			all = append(all, d)
		}
		return all
	}
	for _, c := range []struct {
		count, answer, attempts int
		pages, kept             int // bytes of the first answer
	}{
		{0, 0, 0, 0, 0}, {1, 1018, 1, 1, 1024}, {30, 1018, 1, 1, 1024}, {100, 1018, 1, 1, 256}, {300, 1018, 1, 1,
			64}, {500, 1018, 1, 1, 16},
		{1000, 1018, 1, 2, 16}, {1001, 0, 1, 2, 6}, {1, 1018, 40, 1, 1024}, {100, 1018, 40, 2, 4},
	} {
		all := messages(c.count, c.answer, c.attempts)
		pages := PagesOf(all)
		var events []string
		for i, page := range pages {
			logged := kvtest.Must(DecodePage(page.Value))(t)
			if len(page.Value) > pageBytes || len(logged) != page.Count {
				t.Errorf("%+v: page %d has %d bytes, and %d deliveries, not %d", c, i, len(page.Value), len(logged),
					page.Count)
			}
			for _, d := range logged {
				events = append(events, d.EventID)
			}
			if i == 0 && len(logged[0].Answer) != c.kept {
				t.Errorf("%+v: %d bytes are kept of an answer", c, len(logged[0].Answer))
			}
		}
		var want []string
		for _, d := range all {
			want = append(want, d.EventID)
		}
		sameDelivery(t, events, want)
		if len(pages) != c.pages {
			t.Errorf("%+v: there are %d pages", c, len(pages))
		}
	}
}

// TestLargestMessage: a stored message takes at most 3 KiB, whatever receivers answer. The guide to operations computes
// with this size how much an endpoint can take.
func TestLargestMessage(t *testing.T) {
	event := keyspace.EventID(kvtest.Owner, keyspace.Location{Epoch: 1 << 40}, "a record", 1<<40)
	d := store.Delivery{Type: licensing.EventLicenseLimitReached, Next: kvtest.Time, Answer: strings.Repeat("ä", 1<<20)}
	for range 1000 {
		d.Attempts = append(d.Attempts, store.DeliveryAttempt{At: kvtest.Time.Add(time.Hour), Duration: time.Hour,
			Status: 599, Failure: "connection_refused"})
	}
	size := SizeOf(len(keyspace.DeadKey("we_"+strings.Repeat("0", 27), event)), len(EncodeDelivery(&d)))
	if size.Bytes > 3<<10 || size.Bytes < 2<<10 {
		t.Errorf("%d bytes", size.Bytes)
	}
}

// FuzzDecodeDeliveries reads any bytes as what is kept of deliveries: none may panic,
// and what is accepted must be stored and read again as the same thing.
func FuzzDecodeDeliveries(f *testing.F) {
	delivery, replay := kvtest.Delivery(), kvtest.Replay()
	f.Add(goldenProgress().Encode())
	f.Add(EncodeDelivery(&delivery))
	f.Add(EncodeReplay(kvtest.Owner, &replay))
	f.Add(encodePage(goldenPage(), maxAnswer))
	f.Add([]byte{formatVersion, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		if got, err := DecodeProgress(value); err == nil {
			sameDelivery(t, kvtest.Must(DecodeProgress(got.Encode()))(t), got)
		}
		if got, err := DecodeDelivery("evt_1", store.DeliveryDead, value); err == nil && len(got.Answer) <= maxAnswer &&
			len(got.Attempts) <= maxAttempts && sane(got) {
			sameDelivery(t, kvtest.Must(DecodeDelivery("evt_1", store.DeliveryDead, EncodeDelivery(&got)))(t), got)
		}
		if owner, got, err := DecodeReplay("1", value); err == nil {
			_, again, err := DecodeReplay("1", EncodeReplay(owner, &got))
			if err != nil {
				t.Fatal(err)
			}
			sameDelivery(t, again, got)
		}
		if got, err := DecodePage(value); err == nil {
			for _, page := range PagesOf(got) {
				if again := kvtest.Must(DecodePage(page.Value))(t); len(again) != page.Count {
					t.Errorf("%d of %d deliveries", len(again), page.Count)
				}
			}
		}
	})
}

// sane reports whether no number of a message is negative: negative numbers are not written.
func sane(d store.Delivery) bool {
	for _, a := range d.Attempts {
		if a.Status < 0 {
			return false
		}
	}
	return true
}
