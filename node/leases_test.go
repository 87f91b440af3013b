package node_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

const lease = 10 * time.Minute

// floating grants a license with leases.
func floating(t *testing.T, n *service.Service, maxDevices int) licensing.LicenseKey {
	t.Helper()
	return grantOf(t, n, fmt.Sprintf("floating-%d", maxDevices), licensing.Terms{MaxDevices: maxDevices,
		Lease: licensing.LeaseTerms{Length: lease, Longest: time.Hour}})
}

// TestLapsedSlots: on a full license, the next activation takes a slot whose lease has lapsed, and its guard too. That
// holds on a license with devices in its record, on one with devices of their own, and on a node that remembers little.
func TestLapsedSlots(t *testing.T) {
	for _, devices := range []int{3, 16, 17, 60} {
		for _, forgetful := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d devices, forgetful %v", devices, forgetful), func(t *testing.T) {
				t.Parallel()
				clock := &nodetest.Clock{}
				n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
				key := floating(t, n, devices)
				node := nodesOf(t, n, clock, forgetful)
				refused := func(device string) {
					t.Helper()
					wantFull(t, node(), key, device)
				}
				for i := range devices {
					nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
				}
				refused("another")
				clock.Advance(lease / 2)
				for i := range devices - 2 {
					nodetest.MustActivate(t, node(), key, fmt.Sprint("device ", i))
				}
				clock.Advance(lease/2 + licensing.LeaseGuard - time.Millisecond)
				refused("another")
				clock.Advance(time.Millisecond)
				if got := nodetest.MustActivate(t, node(), key, "another"); got.LeaseLeft != lease || !got.Bound {
					t.Errorf("the lease has %v left, bound %v", got.LeaseLeft, got.Bound)
				}
				nodetest.MustActivate(t, node(), key, "one more")
				refused("too many")
				if count, ids := nodetest.Devices(t, n, key); count != devices || !ids["another"] || !ids["one more"] {
					t.Errorf("%d devices: %v", count, ids)
				}
			})
		}
	}
}

// TestManyTakeLapsedSlots: of many devices that come at once, as many get leases as have lapsed.
func TestManyTakeLapsedSlots(t *testing.T) {
	t.Parallel()
	const devices = 130 // more than one swap removes
	clock := &nodetest.Clock{}
	n := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
	rival := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
	key := floating(t, n, devices)
	comes := func(from, to int) int64 {
		return activateAtOnce(t, [2]*service.Service{n, rival}, key, from, to)
	}
	if got := comes(0, 200); got != devices {
		t.Fatalf("%d of %d devices have leases", got, devices)
	}
	clock.Advance(lease + licensing.LeaseGuard)
	if got := comes(1000, 1000+2*devices); got != devices {
		t.Fatalf("%d devices have taken slots, want %d", got, devices)
	}
	if count, _ := nodetest.Devices(t, n, key); count != devices {
		t.Errorf("%d devices", count)
	}
}

// TestManyLapsedOnLoweredLimit: a full license refuses no device while leases have lapsed, however many: after its
// limit was lowered, one slot may take hundreds of removals.
func TestManyLapsedOnLoweredLimit(t *testing.T) {
	t.Parallel()
	const devices, limit = 200, 5
	db := &searches{Store: nodetest.OpenStore(t)}
	clock := &nodetest.Clock{}
	n := nodetest.New(t, db, nodetest.WithClock(clock))
	key := floating(t, n, devices)
	for i := range devices {
		if i == devices-1 {
			clock.Advance(time.Minute)
		}
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	_, _, err := n.ChangeLicense(nodetest.Context(t), nodetest.Owner, service.LicenseChange{Key: key,
		Command: licensing.UpdateLicense{Target: licensing.Target{Key: key, Caller: nodetest.Owner},
			MaxDevices: new(limit)}})
	nodetest.WantError(t, err, nil)
	clock.Advance(lease - time.Minute + licensing.LeaseGuard)
	for i := range limit - 1 { // one lease has not lapsed
		nodetest.MustActivate(t, n, key, fmt.Sprint("new ", i))
	}
	wantFull(t, n, key, "one more")
	if count, ids := nodetest.Devices(t, n, key); count != limit || !ids["new 0"] || !ids["device 199"] {
		t.Errorf("%d devices: %v", count, ids)
	}
	if got, most := db.count.Load(), int64(devices/store.MaxLapsed+1); got > most {
		t.Errorf("%d searches, want at most %d", got, most)
	}
}

// TestLapsedLeasesAreSwept: without activations, a sweep removes lapsed leases, however many.
func TestLapsedLeasesAreSwept(t *testing.T) {
	clock := &nodetest.Clock{}
	db := nodetest.OpenWith(t, nodetest.OwnEtcd(t))
	n := nodetest.New(t, db, nodetest.WithClock(clock))
	few, many := floating(t, n, 3), floating(t, n, 130)
	for i := range 130 {
		if i < 3 {
			nodetest.MustActivate(t, n, few, fmt.Sprint("device ", i))
		}
		nodetest.MustActivate(t, n, many, fmt.Sprint("device ", i))
	}
	clock.Advance(lease - time.Minute)
	nodetest.MustActivate(t, n, few, "device 1")
	nodetest.MustActivate(t, n, many, "device 1")
	for _, step := range []struct {
		after     time.Duration
		few, many int
	}{{time.Minute + licensing.LeaseGuard - time.Millisecond, 3, 130}, {time.Millisecond, 1, 1}, {lease, 0, 0}} {
		clock.Advance(step.after)
		nodetest.WantError(t, n.RemoveLapsedLeases(nodetest.Context(t)), nil)
		for key, want := range map[licensing.LicenseKey]int{few: step.few, many: step.many} {
			loaded, err := db.Load(nodetest.Context(t), store.Want{Ref: licensing.LicenseRef(key)})
			if err != nil {
				t.Fatal(err)
			}
			if l := loaded[0].Record.License; l.CurrentDevices != want {
				t.Errorf("after %v, %d devices are stored, want %d", step.after, l.CurrentDevices, want)
			}
		}
	}
}

// searches counts the searches for lapsed leases.
type searches struct {
	store.Store
	count atomic.Int64
}

func (s *searches) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	for _, want := range wants {
		if !want.LapsedBy.IsZero() {
			s.count.Add(1)
		}
	}
	return s.Store.Load(ctx, wants...)
}

// TestSearchesAreBounded: refused activations of a full license make one search for each end that the license records,
// and none if a limit refuses them anyway. If leases lapse one after the other, the limits bound the searches.
func TestSearchesAreBounded(t *testing.T) {
	const devices = 40
	db := &searches{Store: nodetest.OpenStore(t)}
	n, clock := limitedNode(t, db, node.WriteLimits{
		NewDevices:   node.WriteLimit{Count: 100, Per: 10 * time.Hour},
		LicenseBytes: node.WriteLimit{Count: 100 << 10, Per: 100 * time.Minute}, // a search counts more than 20 KiB
	})
	key := floating(t, n, devices)
	for i := range devices {
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	comes := func(device string) licensing.Reason {
		_, err := nodetest.Activate(nodetest.Context(t), n, key, device)
		return licensing.ReasonOf(err)
	}
	wantSearches := func(when string, want int64) {
		t.Helper()
		if got := db.count.Swap(0); got != want {
			t.Errorf("%s: %d searches, want %d", when, got, want)
		}
	}
	clock.Advance(lease / 2)
	for i := range devices {
		clock.Advance(time.Second)
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	clock.Advance(lease / 2)
	for i := range 20 {
		if reason := comes(fmt.Sprint("another ", i)); reason != licensing.ReasonDeviceLimitReached {
			t.Fatalf("answered %v", reason)
		}
	}
	wantSearches("no lease has lapsed", 1)

	clock.Advance(lease/2 - devices*time.Second + licensing.LeaseGuard)
	taken := 0
	for reason := licensing.Reason(""); reason == ""; taken++ {
		clock.Advance(time.Second)
		if reason = comes(fmt.Sprint("next ", taken)); reason != "" && reason != licensing.ReasonRateLimited {
			t.Fatalf("answered %v", reason)
		}
	}
	if got := db.count.Swap(0); got == 0 || got > 6 {
		t.Errorf("%d searches, want about as many as 100 KiB are", got)
	}
	for i := range 20 {
		clock.Advance(time.Second)
		if reason := comes(fmt.Sprint("refused ", i)); reason != licensing.ReasonRateLimited {
			t.Errorf("answered %v", reason)
		}
	}
	wantSearches("beyond the limit", 0)
	nodetest.MustActivate(t, n, key, fmt.Sprint("device ", devices-1)) // a renewal is not limited
}

// TestLimitRefusesNoHolder: a limit that refuses searches does not refuse a device that has renewed its lease at
// another node, of which this node does not know.
func TestLimitRefusesNoHolder(t *testing.T) {
	const devices = 40
	n, clock := limitedNode(t, nodetest.OpenStore(t), node.WriteLimits{
		NewDevices: node.WriteLimit{Count: devices, Per: 1000 * time.Hour}})
	rival := nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
	key := floating(t, n, devices)
	for i := range devices {
		nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
	}
	clock.Advance(lease / 2)
	nodetest.MustActivate(t, rival, key, "device 0")
	clock.Advance(lease/2 + licensing.LeaseGuard)
	if got := nodetest.MustActivate(t, n, key, "device 0"); got.Bound {
		t.Errorf("the result is %+v", got)
	}
	if _, err := nodetest.Activate(nodetest.Context(t), n, key, "another"); licensing.ReasonOf(err) !=
		licensing.ReasonRateLimited {
		t.Errorf("another device: %v", err)
	}
}

// TestLeasesInUse: the nodes count the leases in use of each product, whatever is due first on a license, in all slots
// in which the end of a lease is the first work of a license.
func TestLeasesInUse(t *testing.T) {
	reg := prometheus.NewRegistry()
	n := nodetest.New(t, nodetest.OpenWith(t, nodetest.OwnEtcd(t)), func(cfg *service.Config) {
		cfg.Metrics = metrics.New(reg, "test", "", "")
	})
	for range 2 {
		for devices, used := range map[int]int{3: 2, 40: 20, 5: 0} {
			key := floating(t, n, devices)
			for i := range used {
				nodetest.MustActivate(t, n, key, fmt.Sprint("device ", i))
			}
		}
	}
	// The notice of a license a day before its end is due before its lease ends.
	ending, _, err := n.Grant(nodetest.Context(t), nodetest.Owner, service.Grant{ProductID: "floating-3", Quantity: 1,
		ExpiresAt: time.Now().Add(inactiveDay + lease/2).UTC().Truncate(time.Millisecond)})
	nodetest.WantError(t, err, nil)
	nodetest.MustActivate(t, n, ending[0].License.Key, "device")
	nodetest.WantError(t, n.CountLeases(nodetest.Context(t)), nil)
	series := func(product string, count int) string {
		return fmt.Sprintf("licet_leases_in_use{account=%q,mode=%q,product=%q} %d\n",
			nodetest.Owner.AccountID, nodetest.Owner.Mode, product, count)
	}
	scrape := httptest.NewRecorder()
	metrics.Handler(reg).ServeHTTP(scrape, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	got := scrape.Body.String()
	if strings.Count(got, "\nlicet_leases_in_use{") != 2 || !strings.Contains(got, series("floating-3", 5)) ||
		!strings.Contains(got, series("floating-40", 40)) {
		t.Error(got)
	}
}
