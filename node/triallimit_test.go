package node_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
)

// TestTrialLimits: the end users of one network start 20 trials of an owner at once, and one a second. All end users of
// an owner together start 100, and its API keys 100 more. A repetition never counts.
func TestTrialLimits(t *testing.T) {
	n, clock := stopped(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	if _, _, err := n.PutProduct(nodetest.Context(t), licensing.PutProduct{ID: "pro", Owner: owner,
		Terms: licensing.DefaultTerms(),
		Trial: licensing.TrialTerms{Validity: licensing.Period{Days: 7}, MaxDevices: 1}}); err != nil {
		t.Fatal(err)
	}
	devices := 0
	start := func(device, from string) error {
		t.Helper()
		in := service.NewTrial{ProductID: "pro", Device: device, By: "key_1"}
		if from != "" {
			in.By, in.Network = licensing.EndUser, netip.MustParseAddr(from)
		}
		_, err := n.StartTrial(nodetest.Context(t), owner, in)
		if err != nil && limitedBy(err) == "" {
			t.Fatalf("a trial from %q: %v", from, err)
		}
		return err
	}
	want := func(from string, trials int, then string) {
		t.Helper()
		for i := range trials + 1 {
			devices++
			policy := limitedBy(start(fmt.Sprint("device ", devices), from))
			if i < trials && policy != "" || i == trials && policy != then {
				t.Fatalf("trial %d from %q is limited by %q; want %d trials, and then %q", i+1, from, policy,
					trials, then)
			}
		}
	}
	want("192.0.2.1", 20, node.PolicyAddressTrials)
	for range 30 {
		if err := start("device 1", "192.0.2.1"); err != nil {
			t.Fatalf("a repetition: %v", err)
		}
	}
	want("2001:db8:1:1::", 20, node.PolicyAddressTrials)
	want("2001:db8:1:2::", 0, node.PolicyAddressTrials) // of the same /48
	for network := range 3 {
		want(fmt.Sprint("198.51.100.", network), 20, node.PolicyAddressTrials)
	}
	want("203.0.113.1", 0, node.PolicyTrials)
	want("", 100, node.PolicyTrials)
	later := clock.Load().Add(time.Second)
	clock.Store(&later)
	want("192.0.2.1", 1, node.PolicyAddressTrials)
	want("203.0.113.1", 9, node.PolicyTrials)
	want("", 10, node.PolicyTrials)
}
