package kv

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"licet/node/store"
)

func goldenProgress() *storedProgress {
	return &storedProgress{
		progress: store.DeliveryProgress{
			Place: "evt_001", Pending: 2, Dead: 300, SeenAt: testTime, Failures: 5, FailingSince: testTime.Add(time.Second),
			NextProbe: testTime.Add(2 * time.Second), LastSuccess: testTime.Add(3 * time.Second), SkippedAt: testTime.Add(4 * time.Second), Behind: true,
		},
		owner: goldenOwner, number: 400, begun: true, log: deliveryLog{first: 7, counts: []int{1, 200, 3}},
	}
}

// goldenPage has two answers, one of them twice.
func goldenPage() []store.Delivery {
	page := make([]store.Delivery, 3)
	for i := range page {
		page[i] = goldenDelivery()
		page[i].EventID, page[i].Status, page[i].Next = fmt.Sprintf("evt_00%d", i), store.DeliveryDelivered, time.Time{}
	}
	page[1].Answer, page[2].Attempts = "ok", page[2].Attempts[:1]
	return page
}

func TestGoldenDeliveries(t *testing.T) {
	var b strings.Builder
	show := func(name string, value []byte) { fmt.Fprintf(&b, "%s\n%s\n", name, hex.Dump(value)) }
	delivery, replay := goldenDelivery(), goldenReplay()
	show("progress of an endpoint", goldenProgress().encode())
	show("pending message", encodeDelivery(&delivery))
	show("replay", encodeReplay(goldenOwner, &replay))
	show("page of the log", encodePage(goldenPage(), maxAnswer))
	golden(t, "deliveries.golden", b.String())
}

func sameDelivery(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(storedProgress{}, deliveryLog{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeliveryRoundTrip(t *testing.T) {
	progress := goldenProgress()
	progress.unknown = appendString(nil, 99, "of a newer node")
	sameDelivery(t, must(decodeProgress(progress.encode()))(t), progress)
	sameDelivery(t, must(decodeProgress((&storedProgress{owner: goldenOwner}).encode()))(t), &storedProgress{owner: goldenOwner})
	delivery := goldenDelivery()
	sameDelivery(t, must(decodeDelivery(delivery.EventID, delivery.Status, encodeDelivery(&delivery)))(t), delivery)
	for _, replay := range []store.Replay{goldenReplay(), {ID: "1", EventID: "evt_1"}, {ID: "2", Dead: true}} {
		owner, got, err := decodeReplay(replay.ID, encodeReplay(goldenOwner, &replay))
		if err != nil || owner != goldenOwner {
			t.Fatal(owner, err)
		}
		sameDelivery(t, got, replay)
	}
	sameDelivery(t, must(decodePage(encodePage(goldenPage(), maxAnswer)))(t), goldenPage())
}

// TestBrokenDeliveries refuses what can't be meant.
func TestBrokenDeliveries(t *testing.T) {
	owner := appendOwner([]byte{formatVersion}, progressOwner, goldenOwner)
	for name, value := range map[string][]byte{
		"no owner":              {formatVersion},
		"a newer format":        {2},
		"pages that are none":   appendBytes(owner, progressPages, []byte{0}),
		"a page without end":    appendBytes(owner, progressPages, []byte{0x80}),
		"fewer than none":       appendUint(owner, progressPending, 1<<63),
		"a number that is text": appendString(owner, progressDead, "7"),
	} {
		if got, err := decodeProgress(value); err == nil {
			t.Errorf("progress, %s: %+v", name, got)
		}
	}
	for name, value := range map[string][]byte{
		"an answer that is not there": appendBytes([]byte{formatVersion}, pageDelivery, appendUint(appendString(nil, loggedEvent, "evt_1"), loggedAnswer, 1)),
		"no event":                    appendBytes([]byte{formatVersion}, pageDelivery, nil),
	} {
		if got, err := decodePage(value); err == nil {
			t.Errorf("page, %s: %+v", name, got)
		}
	}
	if got, err := decodeDelivery("evt_1", store.DeliveryDead, appendBytes([]byte{formatVersion}, deliveryAttempt, appendUint(nil, attemptDuration, 1<<62))); err == nil {
		t.Errorf("an attempt of %v", got.Attempts[0].Duration)
	}
}

// TestWhatIsKeptOfDeliveries holds the bounds of what receivers answer.
func TestWhatIsKeptOfDeliveries(t *testing.T) {
	d := goldenDelivery()
	d.Answer = strings.Repeat("x", maxAnswer-1) + "é" + strings.Repeat("y", maxAnswer)
	for i := range 2 * maxAttempts {
		d.Attempts = append(d.Attempts, store.DeliveryAttempt{At: testTime.Add(time.Duration(i) * time.Hour), Status: 500})
	}
	got := must(decodeDelivery(d.EventID, d.Status, encodeDelivery(&d)))(t)
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
			d := goldenDelivery()
			d.EventID, d.Answer, d.Attempts = fmt.Sprintf("evt_%036d", i), fmt.Sprintf("%06d%s", i, strings.Repeat("x", answer)), nil
			for range attempts {
				d.Attempts = append(d.Attempts, store.DeliveryAttempt{At: testTime, Failure: strings.Repeat("f", 20)})
			}
			all = append(all, d)
		}
		return all
	}
	for _, c := range []struct {
		count, answer, attempts int
		pages, kept             int // bytes of the first answer
	}{
		{0, 0, 0, 0, 0}, {1, 1018, 1, 1, 1024}, {30, 1018, 1, 1, 1024}, {100, 1018, 1, 1, 256}, {300, 1018, 1, 1, 64}, {500, 1018, 1, 1, 16},
		{1000, 1018, 1, 2, 16}, {1001, 0, 1, 2, 6}, {1, 1018, 40, 1, 1024}, {100, 1018, 40, 2, 4},
	} {
		all := messages(c.count, c.answer, c.attempts)
		pages := pagesOf(all)
		var events []string
		for i, page := range pages {
			logged := must(decodePage(page.value))(t)
			if len(page.value) > pageBytes || len(logged) != page.count {
				t.Errorf("%+v: page %d has %d bytes, and %d deliveries, not %d", c, i, len(page.value), len(logged), page.count)
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

// FuzzDecodeDeliveries reads any bytes as what is kept of deliveries: none may panic,
// and what is accepted must be stored and read again as the same thing.
func FuzzDecodeDeliveries(f *testing.F) {
	delivery, replay := goldenDelivery(), goldenReplay()
	f.Add(goldenProgress().encode())
	f.Add(encodeDelivery(&delivery))
	f.Add(encodeReplay(goldenOwner, &replay))
	f.Add(encodePage(goldenPage(), maxAnswer))
	f.Add([]byte{formatVersion, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		if got, err := decodeProgress(value); err == nil {
			sameDelivery(t, must(decodeProgress(got.encode()))(t), got)
		}
		if got, err := decodeDelivery("evt_1", store.DeliveryDead, value); err == nil && len(got.Answer) <= maxAnswer && len(got.Attempts) <= maxAttempts && sane(got) {
			sameDelivery(t, must(decodeDelivery("evt_1", store.DeliveryDead, encodeDelivery(&got)))(t), got)
		}
		if owner, got, err := decodeReplay("1", value); err == nil {
			_, again, err := decodeReplay("1", encodeReplay(owner, &got))
			if err != nil {
				t.Fatal(err)
			}
			sameDelivery(t, again, got)
		}
		if got, err := decodePage(value); err == nil {
			for _, page := range pagesOf(got) {
				if again := must(decodePage(page.value))(t); len(again) != page.count {
					t.Errorf("%d of %d deliveries", len(again), page.count)
				}
			}
		}
	})
}

// sane tells whether nothing of a message is negative, which is not written.
func sane(d store.Delivery) bool {
	for _, a := range d.Attempts {
		if a.Status < 0 {
			return false
		}
	}
	return true
}
