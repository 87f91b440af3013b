package node_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/store"
)

// longest returns a text with as many characters as a device's id or name may have. All but the first few characters
// take four bytes.
func longest(i int) string { return fmt.Sprintf("%03d", i) + strings.Repeat("😀", 252) }

// TestFoldOfLargeCommands lets 512 commands pile up behind one swap: 256 devices with the
// longest ids and names are removed and bound again, while their owner listens. Their
// devices and events take more bytes than one request to etcd may have.
func TestFoldOfLargeCommands(t *testing.T) {
	t.Parallel()
	for _, rival := range []bool{false, true} {
		t.Run(fmt.Sprint("rival ", rival), func(t *testing.T) {
			cfg := nodetest.StoreConfig()
			cfg.RecordActivations = true
			db, gate, arrived := heldCommits(nodetest.OpenWith(t, cfg))
			n := nodetest.New(t, db)
			key := nodetest.Grant(t, n, 0)
			ref := licensing.LicenseRef(key)
			bind := func(device string) error {
				cmd := licensing.Activate{Target: licensing.Target{Key: key}, Device: device, Name: longest(0),
					Named: true}
				_, err := n.Activate(nodetest.Context(t), cmd)
				return err
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			var group sync.WaitGroup
			for i := range store.MaxFoldDevices {
				group.Go(func() { must(bind(longest(i))) })
			}
			group.Wait()

			first, second := make(chan struct{}), make(chan struct{})
			gate.Store(&first)
			group.Go(func() { must(bind("in front")) })
			<-arrived
			for i := range store.MaxFoldDevices {
				group.Go(func() { _, err := remove(nodetest.Context(t), n, key, longest(i)); must(err) })
			}
			n.AwaitQueued(ref, store.MaxFoldDevices)
			for i := range store.MaxFoldDevices {
				group.Go(func() { must(bind(longest(i))) })
			}
			n.AwaitQueued(ref, 2*store.MaxFoldDevices)
			gate.Store(&second)
			close(first)
			<-arrived // the first fold of the waiting commands
			if rival {
				binds("rival")(t, nodetest.New(t, nodetest.OpenStore(t)), key)
			}
			gate.Store(nil)
			close(second)
			group.Wait()
			// A removal and an activation that waited together may be made in either order.
			if count, ids := nodetest.Devices(t, n, key); count != len(ids) || !ids["in front"] ||
				ids["rival"] != rival {
				t.Errorf("current_devices is %d, %d bound", count, len(ids))
			}
			for i := range store.MaxFoldDevices {
				must(bind(longest(i)))
			}
			if count, ids := nodetest.Devices(t, n, key); count != len(ids) || count < store.MaxFoldDevices+1 {
				t.Errorf("afterwards current_devices is %d, %d bound", count, len(ids))
			}
		})
	}
}
