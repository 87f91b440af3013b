package node_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// limitedNode returns a node with write limits, and its clock.
func limitedNode(t *testing.T, db store.Store, limits node.WriteLimits) (*service.Service, *nodetest.Clock) {
	var clock nodetest.Clock
	return nodetest.New(t, db, nodetest.WithClock(&clock), func(c *service.Config) { c.WriteLimits = limits }), &clock
}

// activate activates a license and returns the limit that refused it, nil if none did.
func activate(t *testing.T, n *service.Service, cmd licensing.Activate) *licensing.Limit {
	t.Helper()
	_, err := n.Activate(nodetest.Context(t), cmd)
	if err == nil {
		return nil
	}
	var refused *licensing.Error
	if !errors.As(err, &refused) || refused.Reason != licensing.ReasonRateLimited || refused.Limit == nil {
		t.Fatalf("activating %s: %v", cmd.Device, err)
	}
	return refused.Limit
}

func on(key licensing.LicenseKey, device string) licensing.Activate {
	return licensing.Activate{Target: licensing.Target{Key: key}, Device: device}
}

// TestNewDevicesLimit: new devices and new names take tokens of their license. Bound devices take none, and other
// licenses have tokens of their own.
func TestNewDevicesLimit(t *testing.T) {
	n, clock := limitedNode(t, nodetest.OpenStore(t), node.WriteLimits{
		NewDevices: node.WriteLimit{Count: 3, Per: 300 * time.Second},
	})
	key, other := nodetest.Grant(t, n, 0), nodetest.Grant(t, n, 0)
	wantBound := func(device string) {
		t.Helper()
		if limit := activate(t, n, on(key, device)); limit != nil {
			t.Fatalf("activating %s was refused: %+v", device, *limit)
		}
	}
	wantRefused := func(cmd licensing.Activate, next time.Duration) {
		t.Helper()
		limit := activate(t, n, cmd)
		if limit == nil {
			t.Fatalf("activating %s was not refused", cmd.Device)
		}
		if limit.Policy != node.PolicyNewDevices || limit.Count != 3 || limit.Next <= 0 || limit.Next > next {
			t.Errorf("activating %s was refused by %+v; the next token comes in %v", cmd.Device, *limit, next)
		}
	}
	for i := range 3 {
		wantBound(strconv.Itoa(i))
	}
	wantRefused(on(key, "fourth"), 100*time.Second)
	for range 10 {
		wantBound("0") // a bound device never counts
	}
	if count, ids := nodetest.Devices(t, n, key); count != 3 || ids["fourth"] {
		t.Errorf("current_devices %d, bound %v; want the first three", count, ids)
	}
	if limit := activate(t, n, on(other, "0")); limit != nil {
		t.Errorf("another license was refused: %+v", *limit)
	}

	clock.Advance(100 * time.Second)
	rename := on(key, "0")
	rename.Name, rename.Named = "Tin", true
	if limit := activate(t, n, rename); limit != nil {
		t.Fatalf("the new name was refused: %+v", *limit)
	}
	wantRefused(on(key, "fourth"), 100*time.Second)
	clock.Advance(licensing.DefaultSeenStep)
	rename.Name = "Box"
	wantRefused(rename, 100*time.Second)
	clock.Advance(40 * time.Second)
	wantBound("fourth")
}

// TestNewDevicesLimitOfLapsedLeases: a device that takes the slot of a lapsed lease counts as new, and so does a device
// that comes back after its own lease has lapsed.
func TestNewDevicesLimitOfLapsedLeases(t *testing.T) {
	for _, devices := range []int{3, 17} {
		t.Run(fmt.Sprint(devices, " devices"), func(t *testing.T) {
			n, clock := limitedNode(t, nodetest.OpenStore(t), node.WriteLimits{
				NewDevices: node.WriteLimit{Count: 2*devices + 1, Per: 1000 * time.Hour}})
			key := floating(t, n, devices)
			wantBound := func(device string) {
				t.Helper()
				if limit := activate(t, n, on(key, device)); limit != nil {
					t.Fatalf("%s was refused: %+v", device, *limit)
				}
			}
			for range 2 {
				for i := range devices {
					wantBound(fmt.Sprint("device ", i))
				}
				clock.Advance(lease + licensing.LeaseGuard)
			}
			wantBound("another")
			if limit := activate(t, n, on(key, "one more")); limit == nil || limit.Policy != node.PolicyNewDevices {
				t.Errorf("one more device was refused by %+v", limit)
			}
			wantBound("another") // a renewal never counts
		})
	}
}

// TestNewDevicesLimitOfAStorm: of many concurrent activations on two nodes, each node lets in exactly as many as its
// limit allows, however often their swaps are lost.
func TestNewDevicesLimitOfAStorm(t *testing.T) {
	const limit = 20
	limits := node.WriteLimits{NewDevices: node.WriteLimit{Count: limit, Per: time.Hour}}
	first, _ := limitedNode(t, nodetest.OpenStore(t), limits)
	second, _ := limitedNode(t, nodetest.OpenStore(t), limits)
	key := nodetest.Grant(t, first, 0)
	var group sync.WaitGroup
	var refused, bound atomic.Int32
	for i, n := range []*service.Service{first, second} {
		for j := range 2 * limit {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				for {
					switch _, err := n.Activate(ctx, on(key, strconv.Itoa(i)+"-"+strconv.Itoa(j))); {
					case err == nil:
						bound.Add(1)
					case licensing.ReasonOf(err) == licensing.ReasonRateLimited:
						refused.Add(1)
					case licensing.NotExecuted(err) && ctx.Err() == nil:
						continue
					default:
						t.Errorf("activating: %v", err)
					}
					return
				}
			})
		}
	}
	group.Wait()
	count, ids := nodetest.Devices(t, first, key)
	if got := int(bound.Load()); got > 2*limit || got+int(refused.Load()) != 4*limit || got != count ||
		got != len(ids) {
		t.Errorf("%d bound, %d refused, current_devices %d, %d devices; want at most %d bound", got, refused.Load(),
			count, len(ids), 2*limit)
	}
}

// countedCommits counts the bytes of the commits that land.
type countedCommits struct {
	store.Store
	bytes atomic.Int64
}

func (s *countedCommits) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	outcome, err := s.Store.Commit(ctx, change)
	s.bytes.Add(int64(outcome.Bytes))
	return outcome, err
}

// TestByteLimits: the bytes that a license has written bound what it writes next. The same holds for all licenses of an
// owner together.
func TestByteLimits(t *testing.T) {
	for policy, limits := range map[string]node.WriteLimits{
		node.PolicyLicenseBytes: {LicenseBytes: node.WriteLimit{Count: 2000, Per: 10 * time.Second}},
		node.PolicyAccountBytes: {AccountBytes: node.WriteLimit{Count: 2000, Per: 10 * time.Second}},
	} {
		t.Run(policy, func(t *testing.T) {
			db := &countedCommits{Store: nodetest.OpenStore(t)}
			n, clock := limitedNode(t, db, limits)
			keys := []licensing.LicenseKey{nodetest.Grant(t, n, 0), nodetest.Grant(t, n, 0)}
			clock.Advance(time.Minute)
			db.bytes.Store(0)
			device := 0
			fill := func() (bound int) {
				for ; device < 1000; device++ {
					if limit := activate(t, n, on(keys[0], strconv.Itoa(device))); limit != nil {
						if limit.Policy != policy || limit.Next <= 0 || limit.Next > 10*time.Second {
							t.Fatalf("refused by %+v, want %s", *limit, policy)
						}
						return bound
					}
					bound++
				}
				t.Fatal("nothing bounds the bytes")
				return bound
			}
			if fill() < 2 {
				t.Error("the limit refused the first devices")
			}
			if bytes := db.bytes.Load(); bytes < 2000 || bytes > 5000 {
				t.Errorf("%d bytes were written at once, want 2000 and about one change more", bytes)
			}
			shared := policy == node.PolicyAccountBytes
			if limit := activate(t, n, on(keys[1], "first")); (limit != nil) != shared {
				t.Errorf("another license of the owner was refused by %v, want refused: %v", limit, shared)
			}
			if limit := activate(t, n, on(keys[0], "0")); limit != nil {
				t.Errorf("a bound device was refused by %+v", *limit)
			}
			clock.Advance(20 * time.Second)
			if fill() == 0 {
				t.Error("the limit still refuses new devices after twice its time")
			}
		})
	}
}

// TestByteLimitsOfReplacements: metadata of the same size as the metadata before counts, and is refused like other
// growth.
func TestByteLimitsOfReplacements(t *testing.T) {
	n, _ := limitedNode(t, nodetest.OpenStore(t),
		node.WriteLimits{LicenseBytes: node.WriteLimit{Count: 20_000, Per: 10 * time.Second}})
	key := nodetest.Grant(t, n, 1)
	change := func(i int) error {
		text := fmt.Sprintf(`{"a":"%s %d"}`, strings.Repeat("x", 5000), i)
		_, err := n.Do(nodetest.Context(t), licensing.LicenseRef(key),
			licensing.UpdateLicense{Target: licensing.Target{Key: key}, Metadata: text})
		return err
	}
	for i := range 10 {
		if err := change(i); err != nil {
			if licensing.ReasonOf(err) != licensing.ReasonRateLimited || i < 3 {
				t.Errorf("change %d: %v", i, err)
			}
			return
		}
	}
	t.Error("nothing bounds the bytes")
}

// TestEndUserWritesLittle: an end user without credentials makes a node write little, with the default limits, be it
// by new devices on an unlimited license, or by new names of the only device.
func TestEndUserWritesLittle(t *testing.T) {
	const seconds = 10
	db := &countedCommits{Store: nodetest.OpenStore(t)}
	n, clock := limitedNode(t, db, node.WriteLimits{NewDevices: node.WriteLimit{Count: 1000, Per: 100 * time.Second}})

	unlimited := nodetest.Grant(t, n, 0)
	var group sync.WaitGroup
	for i := range 1000 { // the burst
		group.Go(func() { _, _ = n.Activate(context.Background(), on(unlimited, "burst-"+strconv.Itoa(i))) })
	}
	group.Wait()
	db.bytes.Store(0)
	for second := range seconds {
		clock.Advance(time.Second)
		for i := range 100 {
			activate(t, n, on(unlimited, strconv.Itoa(second)+"-"+strconv.Itoa(i)))
		}
	}
	if perSecond := db.bytes.Load() / seconds; perSecond == 0 || perSecond > 20<<10 {
		t.Errorf("new devices write %d bytes a second, want some, and at most 20 KiB", perSecond)
	}

	single := nodetest.Grant(t, n, 1)
	if limit := activate(t, n, on(single, "only")); limit != nil {
		t.Fatalf("refused: %+v", *limit)
	}
	clock.Advance(licensing.DefaultSeenStep)
	db.bytes.Store(0)
	for second := range seconds {
		for i := range 100 {
			rename := on(single, "only")
			rename.Name, rename.Named = strconv.Itoa(second)+"-"+strconv.Itoa(i), true
			activate(t, n, rename)
		}
		clock.Advance(time.Second)
	}
	if bytes := db.bytes.Load(); bytes == 0 || bytes > 2<<10 {
		t.Errorf("new names write %d bytes in %d seconds, want one change of at most 2 KiB", bytes, seconds)
	}
}
