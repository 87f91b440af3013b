package main

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"testing"
	"time"

	"licet/internal/etcdtest"
	"licet/kv"
	"licet/receipt"
)

// TestReceiptsOfTwoClocks runs two nodes, each a process of its own, and sets the clock of one node ahead. Nothing
// shows which of the two clocks is right. Both nodes date receipts by the earlier clock: a device whose clock is right,
// whichever that is, accepts a void receipt for no longer than revocation_max_age. Without a network, a device accepts
// the receipt for almost as long.
func TestReceiptsOfTwoClocks(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	early, late := startClocked(t, cluster, key), startClocked(t, cluster, key)
	waitFor(t, func() bool { return early.is(t, "agrees") && late.is(t, "agrees") })
	const age = time.Hour
	early.want(t, 201, "PUT", "/v1/products/editor", `{"revocation_max_age":"PT1H"}`)
	keys := early.want(t, 200, "PUT", "/v1/receipt_keys", "").Data
	root, err := receipt.ParseRoot(keys.text("root"))
	if err != nil {
		t.Fatal(err)
	}
	documents := "/v1/accounts/" + keys.text("account_id") + "/test/"
	verifier := receipt.Verifier{Root: root, AccountID: keys.text("account_id"), Mode: "test", ProductID: "editor",
		DeviceID: "pc"}

	// Devices accept documents that are 5 minutes ahead, and no others.
	for _, apart := range []time.Duration{4 * time.Minute, 20 * time.Minute} {
		late.set(t, apart.String())
		waitFor(t, func() bool { return early.seesAhead(t, apart) && late.seesAhead(t, -apart) })
		for _, nodes := range [][2]*clocked{{early, early}, {early, late}, {late, early}, {late, late}} {
			issuer, voider := nodes[0], nodes[1]
			license := early.grant(t, 1)
			stored := receipt.Documents{Receipt: issuer.want(t, 200, "POST", "/v1/licenses/activate",
				fmt.Sprintf(`{"license_key":%q,"device_id":"pc","receipt":true,"nonce":"n"}`, license)).
				Data.text("receipt")}
			var set struct{ Signed string }
			if err := json.Unmarshal([]byte(issuer.get(t, issuer.url+documents+"jwks.json").body), &set); err != nil {
				t.Fatal(err)
			}
			stored.Keys = set.Signed
			voider.want(t, 200, "POST", "/v1/licenses/"+license+"/suspend", `{}`)
			void := time.Now() // by the early clock, which is the clock of the test
			list := voider.get(t, voider.url+documents+"revocations")
			if list.status != 200 && list.status != 503 { // a node makes no list by a clock in doubt
				t.Errorf("the list: %d %s", list.status, list.body)
			}
			for _, right := range []time.Duration{0, apart} { // by how much the right clock is ahead
				accepts := func(stored receipt.Documents) time.Duration {
					return time.Second * time.Duration(sort.Search(int(2*age/time.Second), func(s int) bool {
						at := void.Add(right + time.Duration(s)*time.Second)
						_, _, err := verifier.Verify(stored, receipt.Seen{}, at)
						return err != nil
					}))
				}
				where := fmt.Sprintf("%v apart, the late node issues: %t, and voids: %t, the right clock is %v ahead",
					apart, issuer == late, voider == late, right)
				if got := accepts(stored); got > age || got < age-right-time.Minute {
					t.Errorf("%s: without a list, a device accepts the void receipt for %v", where, got)
				}
				if list.status == 200 {
					stored.Revocations = []string{list.body}
					if got := accepts(stored); got > age {
						t.Errorf("%s: with the list, a device accepts the void receipt for %v", where, got)
					}
				}
			}
		}
	}
}

// seesAhead reports whether the node knows that the clock of the other node is ahead by about a time.
func (c *clocked) seesAhead(t *testing.T, by time.Duration) bool {
	t.Helper()
	return math.Abs(c.metric(t, "licet_clock_difference_seconds")-by.Seconds()) < 30
}
