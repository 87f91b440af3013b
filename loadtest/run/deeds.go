package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

// deed is an action on a service, such as killing a node.
type deed struct {
	onNode bool
	do     func(ctx context.Context, d *director, node int) error
}

// startTime is how long a member of etcd may take to start again.
const startTime = 30 * time.Second

// deeds returns the actions that the events of a scenario may name.
func deeds() map[string]deed {
	return map[string]deed{
		"kill": {onNode: true, do: func(_ context.Context, d *director, node int) error {
			d.service.Stage.Crash(node)
			return nil
		}},
		"drain": {onNode: true,
			do: func(_ context.Context, d *director, node int) error { return d.service.Stage.End(node) }},
		"kill and start":   {do: killAndStart},
		"replace a secret": {do: replaceSecret},
		"restart all":      {do: restartAll},
		"kill leader":      {do: killLeader},
		"start members":    {do: startMembers},
		"weigh nodes":      {do: weighNodes},
	}
}

func killAndStart(ctx context.Context, d *director, _ int) error { return d.service.Havoc.Strike(ctx) }

func replaceSecret(ctx context.Context, d *director, _ int) error { return d.service.hooks.Rotate(ctx) }

func restartAll(ctx context.Context, d *director, _ int) error { return d.service.Stage.Roll(ctx) }

func killLeader(ctx context.Context, d *director, _ int) error {
	etcd := d.service.Stage.Etcd
	leader, err := etcd.Leader(ctx)
	if err != nil {
		return err
	}
	etcd.Members[leader].Kill()
	return nil
}

// startMembers starts the members again that have ended.
func startMembers(ctx context.Context, d *director, _ int) error {
	etcd := d.service.Stage.Etcd
	for i, member := range etcd.Members {
		if member.Running() {
			continue
		}
		if err := etcd.StartMember(ctx, i, startTime); err != nil {
			return err
		}
	}
	return nil
}

// weight is what nodes use.
type weight struct {
	memory     int64 // bytes
	goroutines float64
}

// weighNodes reads how much memory and how many goroutines the nodes have. From the second time on it fails if either
// has grown by more than garbage and the load's own.
func weighNodes(ctx context.Context, d *director, _ int) error {
	var sum weight
	for _, n := range d.service.Stage.Nodes {
		memory, err := rig.MemoryOf(n.PID())
		if err != nil {
			return err
		}
		metrics, err := n.Scrape(ctx)
		if err != nil {
			return err
		}
		goroutines, err := metrics.Value("go_goroutines")
		if err != nil {
			return err
		}
		sum.memory, sum.goroutines = sum.memory+memory.Resident, sum.goroutines+goroutines
	}
	d.progress.Say("the nodes have %v", sum)
	before := d.weight
	if d.weight = sum; before.memory > 0 {
		return checkWeight(before, sum, len(d.service.Stage.Nodes))
	}
	return nil
}

func (w weight) String() string {
	return fmt.Sprintf("%d MiB and %.0f goroutines", w.memory>>20, w.goroutines)
}

// checkWeight allows a tenth more, garbage, and the goroutines of some connections.
func checkWeight(before, after weight, nodes int) error {
	const (
		garbage     = 32 << 20 // of one node
		connections = 100      // of one node
	)
	if after.memory > before.memory+before.memory/10+int64(nodes)*garbage ||
		after.goroutines > 1.1*before.goroutines+float64(nodes)*connections {
		return fmt.Errorf("the nodes have %v, and had %v before: they grow", after, before)
	}
	return nil
}
