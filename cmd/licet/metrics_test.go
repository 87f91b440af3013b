package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"licet/internal/etcdtest"
	"licet/kv"
)

// TestFleetCountsOnce has three nodes contend for one license, so that most activations
// hop, many are folded, and swaps are lost. On any way, an activation counts once in the fleet, by the response to its
// client, and its event counts once, at the node that has stored the event.
func TestFleetCountsOnce(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	var nodes []*process
	for range 3 {
		p := startServe(t, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ","),
			"--internal-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--record-activations")
		p.key = key
		nodes = append(nodes, p)
	}
	sum := func(series string) (sum float64) {
		t.Helper()
		for _, p := range nodes {
			sum += p.metric(t, series)
		}
		return sum
	}
	_, all := newFleet(key, nodes...)
	license := all.grant(t, 0)

	var mu sync.Mutex
	answered := make(map[string]float64) // how many activations were answered so
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for worker := range 24 {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				device := fmt.Sprintf("d%d-%d", worker, i)
				for _, success := range []string{"bound", "again"} {
					answer, err := all.activate(t.Context(), license, device)
					if err != nil {
						t.Errorf("no answer: %v", err)
						return
					}
					mu.Lock()
					answered[outcomeOf(answer, success)]++
					mu.Unlock()
					if answer.Code != 0 {
						break
					}
				}
			}
		})
	}
	waitFor(t, func() bool { return sum("licet_hop_commands_run_total") >= 300 })
	cancel()
	group.Wait()

	answers := 0.0
	for outcome, want := range answered {
		answers += want
		if got := sum(`licet_activations_total\{outcome="` + outcome + `"\}`); got != want {
			t.Errorf("%v activations count as %s, and clients got %v such responses", got, outcome, want)
		}
	}
	if got := sum("licet_activations_total"); got != answers {
		t.Errorf("%v activations are counted, and %v were answered", got, answers)
	}
	if got := sum(`licet_http_responses_total\{[^}]*route="/v1/licenses/activate"\}`); got != answers {
		t.Errorf("%v answers are counted, of %v", got, answers)
	}
	if got := sum(`licet_http_request_duration_seconds_count\{[^}]*route="/v1/licenses/activate"\}`); got != answers {
		t.Errorf("%v answers were timed, of %v", got, answers)
	}
	// Activations in doubt may have bound their device: the store shows it.
	recorded := sum(`licet_events_recorded_total\{type="device.bound"\}`)
	if recorded < answered["bound"] || recorded > answered["bound"]+answered["outcome_unknown"] {
		t.Errorf("%v devices were recorded as bound; %v responses said so, and %v responses are missing", recorded,
			answered["bound"], answered["outcome_unknown"])
	}
	if folds, won := sum("licet_fold_commands_count"), sum(`licet_swaps_total\{outcome="won"\}`); won == 0 ||
		folds == 0 {
		t.Errorf("%v folds, %v swaps won", folds, won)
	}
	waitFor(t, func() bool {
		return sum("licet_mailboxes")+sum("licet_mailbox_commands_waiting")+sum("licet_commands_under_way") == 0
	})
}

// outcomeOf names an answer as metrics do.
func outcomeOf(answer reply, success string) string {
	if answer.Code == 0 {
		return success
	}
	return answer.Error.Reason
}
