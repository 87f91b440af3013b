package history

import (
	"flag"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"licet/internal/depth"
)

var (
	firstSeed = flag.Uint64("history.seed", 1, "the first seed of TestHistories")
	seedCount = flag.Int("history.seeds", usualSeeds(),
		"how many seeds TestHistories plays; each weather meets each way of hops in 12")
)

// usualSeeds returns 12 with the race detector, which .ci/run uses at the usual depth.
func usualSeeds() int {
	if depth.Raced() {
		return depth.Of(12, 24)
	}
	return depth.Of(4, 24)
}

// TestHistories plays histories and finds nothing wrong with them. A seed
// fixes what is asked for and what goes wrong, but not when: goroutines run as
// they please, so that a seed that has failed may have to be played some times.
func TestHistories(t *testing.T) {
	var ended atomic.Int64
	t.Cleanup(func() {
		if depth.Full() && *seedCount >= usualSeeds() && ended.Load() == 0 {
			t.Error("no history has a rollout that ended")
		}
	})
	for i := range *seedCount {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			res, err := check(seed, bug{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			t.Log(res)
			ended.Add(int64(res.timeline.endedRollouts()))
			if res.timeline.crossings() == 0 {
				t.Error("the usage of the account never crosses the warning")
			}
			if len(res.violations) > 0 {
				res.report(t)
			}
		})
	}
}

// report fails the test with what was found, the first of it.
func (res *result) report(t *testing.T) {
	if slices.ContainsFunc(res.violations,
		func(v violation) bool { return v.check == "linearizable" || v.check == "undecided" }) {
		res.violations = append(res.run.unexplained(), res.violations...)
	}
	for n, v := range res.violations {
		if n == 10 {
			t.Errorf("and %d more", len(res.violations)-n)
			break
		}
		t.Errorf("%s: %s", v.check, v.text)
	}
	dir, err := res.keep()
	if err != nil {
		t.Error(err)
	}
	t.Errorf("history, revisions and a drawing are in %s; to play it again: go test ./internal/history -run "+
		"TestHistories -history.seed=%d -history.seeds=1", dir, res.run.seed)
}

// String counts what a run was made of.
func (res *result) String() string {
	verdicts := map[verdict]int{}
	for _, op := range res.run.operations {
		verdicts[op.Out.Verdict]++
	}
	revisions, largest := 0, 0
	for _, l := range res.run.licenses {
		revisions += len(res.timeline.licenses[l.key.ID()])
		largest = max(largest, int(l.unknowns.Load()))
	}
	return fmt.Sprintf("seed %d: %d slots, %d lives of nodes, %d licenses, %d orders, %d operations %v (at most %d "+
		"unknown of a license), %d by hops, %d revisions, %d leases lapsed, %d rollouts ended, %d events (%s), "+
		"%d of them notices, %d of usage that cross the warning %d times",
		res.run.seed, len(res.run.slots), len(res.run.processes), len(res.run.licenses), len(res.timeline.orders),
		len(res.run.operations), verdicts, largest, res.run.hops.Load(), revisions, res.timeline.lapses(),
		res.timeline.endedRollouts(), len(res.run.feed),
		[...]string{"does not listen", "listens", "begins to listen"}[res.run.listening], res.run.expirings(),
		len(res.timeline.usages), res.timeline.crossings())
}
