package kv

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"licet/kv/deliveries/deliveriestest"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// TestPageComesWithItsEndpoint changes an endpoint before each event: a reader of the feed never gets an event
// together with an older state of the endpoint.
func TestPageComesWithItsEndpoint(t *testing.T) {
	t.Parallel()
	const events = 40
	l := newEventsLab(t)
	owner, endpoint := acct("changes"), licensing.Endpoint{ID: hooked, URL: "https://shop.example/hook"}
	put := deliveriestest.PutEndpoints(l.store.etcd.Native)
	put(t, owner, []licensing.Endpoint{endpoint})
	changes := make(map[licensing.LicenseKey]int) // before the event of a license
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() {
		for n := 1; n <= events && !t.Failed(); n++ {
			endpoint.Description = strconv.Itoa(n)
			put(t, owner, []licensing.Endpoint{endpoint})
			changes[keyOf(l.license(l.store, owner))] = n
			l.closeEpoch()
		}
	})
	seen := make(map[licensing.LicenseKey]int) // changes, on the page with the event of a license
	page := store.FeedPage{Endpoint: hooked, Limit: 3}
	for end := time.Now().Add(time.Minute); len(seen) < events && time.Now().Before(end) && !t.Failed(); {
		got := kvtest.Must(l.store.ReadEvents(t.Context(), owner, page))(t)
		change, _ := strconv.Atoi(got.Endpoint.Endpoint.Description)
		for i := range got.Events {
			seen[got.Events[i].License.Key] = change
			if got.Events[i].Revision >= got.Endpoint.Revision {
				t.Errorf("an event of revision %d is on a page as of %d", got.Events[i].Revision, got.Endpoint.Revision)
			}
		}
		page.After = got.Next
	}
	writing.Wait()
	if len(seen) < events {
		t.Fatalf("%d of %d events came", len(seen), events)
	}
	for key, n := range changes {
		if seen[key] < n {
			t.Errorf("an event that came after change %d is on a page with change %d", n, seen[key])
		}
	}
}

// TestEndpointFiltersItsPage: a page has the events that its endpoint wants, and none if the endpoint is disabled,
// missing, or belongs to another owner.
func TestEndpointFiltersItsPage(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner, other := acct("reader"), acct("other")
	l.license(l.store, owner)
	l.closeEpoch()
	endpoint := func(types ...licensing.EventType) licensing.Endpoint {
		return licensing.Endpoint{ID: hooked, Types: types}
	}
	disabled := endpoint()
	disabled.DisabledAt = kvtest.Time
	all, wanted := store.FeedPage{Endpoint: hooked, Limit: 10}, store.FeedPage{Endpoint: hooked, Wanted: true,
		Limit: 10}
	for name, c := range map[string]struct {
		owner     licensing.Owner
		endpoints []licensing.Endpoint
		page      store.FeedPage
		found     bool
		events    int
	}{
		"all types": {owner, []licensing.Endpoint{endpoint()}, wanted, true, 1},
		"wanted": {owner, []licensing.Endpoint{{ID: "we_other"}, endpoint(licensing.EventLicenseIssued)}, wanted,
			true, 1},
		"not wanted":    {owner, []licensing.Endpoint{endpoint(licensing.EventOrderPaid)}, wanted, true, 0},
		"all all same":  {owner, []licensing.Endpoint{endpoint(licensing.EventOrderPaid)}, all, true, 1},
		"disabled":      {owner, []licensing.Endpoint{disabled}, all, true, 0},
		"gone":          {owner, []licensing.Endpoint{{ID: "we_other"}}, all, false, 0},
		"another owner": {other, []licensing.Endpoint{endpoint()}, all, false, 0},
	} {
		deliveriestest.PutEndpoints(l.store.etcd.Native)(t, c.owner, c.endpoints)
		if c.owner == other {
			deliveriestest.PutEndpoints(l.store.etcd.Native)(t, owner, nil)
		}
		got := kvtest.Must(l.store.ReadEvents(t.Context(), owner, c.page))(t)
		if got.Endpoint.Found != c.found || got.Endpoint.Revision == 0 || len(got.Events) != c.events {
			t.Errorf("%s: %d events, with %+v", name, len(got.Events), got.Endpoint)
		}
		if c.found && got.Endpoint.Endpoint.ID != hooked {
			t.Errorf("%s: the endpoint is %+v", name, got.Endpoint.Endpoint)
		}
	}
}
