package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// TestListeningInAStorm subscribes and unsubscribes owners on stores whose moves and swaps meet every fault, and binds
// devices on other stores: a device has an event exactly if its owner listens.
func TestListeningInAStorm(t *testing.T) {
	l := newHooksLab(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var stores []*Store
	for i := range 3 {
		s := l.open(nil)
		s.moveEvery = 5 * time.Millisecond
		s.etcd.KV = clientv3.NewKVFromKVClient(&kvtest.FaultyKV{KVClient: s.etcd.Remote,
			Next: kvtest.Storm(seed + uint64(i))}, s.etcd.Native)
		s.etcd.Remote = &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: kvtest.Storm(seed + 10 + uint64(i))}
		stores = append(stores, s)
	}
	stop, cancel := context.WithCancel(t.Context())
	var ticks, all sync.WaitGroup
	for _, s := range stores {
		ticks.Go(func() {
			for stop.Err() == nil {
				_, _ = s.readOpenEpoch(t.Context())
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	wants := make([][]string, 6)
	for o := range wants {
		owner := acct(fmt.Sprint("storm", o))
		ref := l.license(l.store, owner)
		random := rand.New(rand.NewPCG(seed, uint64(o)))
		all.Go(func() {
			listening := false
			for i := range 12 {
				listening = !listening
				var cmd licensing.Command = unsubscribe(owner)
				if listening {
					cmd = subscribe(owner)
				}
				for {
					s := stores[random.IntN(3)]
					loaded, err := s.Load(t.Context(),
						store.Want{Ref: licensing.WebhooksRef(owner)})
					if err != nil {
						continue
					}
					if w := loaded[0].Record.Webhooks; w.Listening() == listening {
						break
					}
					if _, err := licensing.Apply(&loaded[0].Record, cmd, kvtest.Time); err != nil {
						t.Error(err)
						return
					}
					outcome, err := s.Commit(t.Context(),
						store.Change{Writes: []store.Write{{Ref: licensing.WebhooksRef(owner), Token: loaded[0].Token,
							Record: loaded[0].Record}}})
					if err == nil && outcome.Landed {
						break
					}
				}
				device := fmt.Sprintf("d%d", i)
				for first := true; ; first = false {
					s := stores[random.IntN(3)]
					var snapshot store.Snapshot
					want := store.Want{Ref: ref, Devices: []string{device}}
					if got, unsure, ok := s.Recall(want); ok && first && len(unsure) == 0 {
						snapshot = got
					} else {
						loaded, err := s.Load(t.Context(), want)
						if err != nil {
							continue
						}
						snapshot = loaded[0]
					}
					if snapshot.Record.Devices[device].Bound {
						break
					}
					change := bind(t, ref, snapshot, device)
					outcome, err := s.Commit(t.Context(), change)
					if err == nil && outcome.Landed {
						break
					}
				}
				if listening {
					wants[o] = append(wants[o], device)
				}
			}
		})
	}
	all.Wait()
	cancel()
	ticks.Wait()
	l.closeEpoch()
	for o, want := range wants {
		var got []string
		for _, k := range kindsOf(l.feed(acct(fmt.Sprint("storm", o)), 100)) {
			if _, device, ok := strings.Cut(k, "device.bound "); ok {
				got = append(got, device)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("owner %d: events of %q, want %q", o, got, want)
		}
	}
	kvtest.Must(l.store.readOpenEpoch(t.Context()))(t)
	l.clean()
}
