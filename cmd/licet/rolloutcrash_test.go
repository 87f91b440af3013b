package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"licet/internal/depth"
	"licet/internal/etcdtest"
	"licet/kv"
)

// TestRolloutSurvivesKills kills two nodes in turn while a rollout lowers the device limit of many licenses, and while
// end users bind devices. Each kill leaves the rollout to the other node. In the end every license has the terms, or
// more devices than they allow, and no device that was bound is gone.
func TestRolloutSurvivesKills(t *testing.T) {
	t.Parallel()
	const before, after = 3, 2
	licenses, kills := depth.Of(1000, 4000), depth.Of(2, 6)
	cluster := etcdtest.Start(t, 1)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	bank := newBank(t)
	start := func() *process {
		p := startServeAs(t, []string{runWithBank + "=" + bank.URL}, "--etcd-endpoints", endpoints)
		p.key = key
		return p
	}
	nodes := []*process{start(), start()}
	put := func(level, devices int) {
		nodes[0].want(t, map[int]int{1: 201, 2: 200}[level], "PUT", "/v1/products/editor",
			fmt.Sprintf(`{"max_devices":%d,"entitlements":{"level":%d}}`, devices, level))
	}
	put(1, before)
	var keys []string
	for len(keys) < licenses {
		for _, l := range nodes[0].want(t, 201, "POST", "/v1/licenses", `{"product_id":"editor","quantity":500}`).Data.
			list("licenses") {
			keys = append(keys, l.text("license_key"))
		}
	}
	put(2, after)
	rollout := func(n *process) object { return n.want(t, 200, "GET", "/v1/products/editor/rollout", "").Data }
	examined := func(n *process) int { return int(rollout(n)["licenses"].(float64)) }

	// End users bind as many devices as they can, until the rollout has ended.
	f, all := newFleet(key, nodes...)
	bound, ended := make(map[string][]string), make(chan struct{})
	var users sync.WaitGroup
	users.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			default:
			}
			license, device := keys[i*7%len(keys)], fmt.Sprint("device-", i)
			if r, err := all.activate(t.Context(), license, device); err == nil && r.status == 200 {
				bound[license] = append(bound[license], device)
			}
		}
	})
	nodes[0].want(t, 200, "POST", "/v1/products/editor/rollout", `{"terms":["max_devices","entitlements"]}`)
	for kill := range kills {
		dying, other := nodes[kill%2], nodes[1-kill%2]
		enough := examined(other) + 64
		waitFor(t, func() bool { return examined(other) >= enough })
		dying.kill()
		nodes[kill%2] = start()
		f.replace(dying, nodes[kill%2])
	}
	if o := rollout(nodes[0]); o["ended_at"] != nil {
		t.Errorf("the rollout ended before the last kill: %v", o)
	}
	waitFor(t, func() bool { return rollout(nodes[1])["ended_at"] != nil })
	close(ended)
	users.Wait()

	kept, devices := 0, 0
	for _, key := range keys {
		l := nodes[0].want(t, 200, "GET", "/v1/licenses/"+key, "").Data
		there := make(map[string]bool)
		for _, d := range l.list("devices") {
			there[d.text("device_id")] = true
		}
		limit := int(l["max_devices"].(float64))
		if limit == before && len(there) > after {
			kept++
		} else if limit != after || len(there) > after {
			t.Errorf("a license with %d devices has the limit %d", len(there), limit)
		}
		if level := fmt.Sprint(l["entitlements"]); level != "map[level:2]" {
			t.Errorf("a license has the entitlements %s", level)
		}
		for _, device := range bound[key] {
			if devices++; !there[device] {
				t.Errorf("the device %s was bound, and is gone", device)
			}
		}
	}
	o := rollout(nodes[0])
	if o.text("status") != "done" || o["licenses"] != float64(len(keys)) || o["failed"] != 0.0 ||
		o["updated"].(float64) > float64(len(keys)) || o["updated"].(float64) < float64(len(keys)-64*kills) {
		t.Errorf("the rollout is %v", o)
	}
	t.Logf("%v; %d devices were bound, %d licenses kept their limit", o, devices, kept)
	verified := runLicet(t, "store", "verify", "--etcd-endpoints", endpoints)
	if verified.code != exitOK {
		t.Errorf("licet store verify: exit code %d\n%s%s", verified.code, verified.stdout, verified.stderr)
	}
}
