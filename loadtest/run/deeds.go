package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

// deed is what can be done to a service.
type deed struct {
	onNode bool
	do     func(ctx context.Context, d *director, node int) error
}

// drainTime is how long a node may take to end by itself: its drain delay and
// its shutdown timeout.
const drainTime = 30 * time.Second

// deeds is what a scenario's events may name.
func deeds() map[string]deed {
	return map[string]deed{
		"kill":          {onNode: true, do: kill},
		"drain":         {onNode: true, do: drain},
		"restart all":   {do: restartAll},
		"kill leader":   {do: killLeader},
		"start members": {do: startMembers},
		"weigh nodes":   {do: weighNodes},
	}
}

func kill(_ context.Context, d *director, node int) error {
	d.stage.nodes[node].Kill()
	return nil
}

func drain(_ context.Context, d *director, node int) error {
	return d.stage.nodes[node].End(drainTime)
}

// restartAll is what a rolling update does: one node after the other, each of
// them only once the one before is ready again.
func restartAll(ctx context.Context, d *director, _ int) error {
	for _, n := range d.stage.nodes {
		if err := n.End(drainTime); err != nil {
			return err
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func killLeader(ctx context.Context, d *director, _ int) error {
	leader, err := d.stage.etcd.Leader(ctx)
	if err != nil {
		return err
	}
	d.stage.etcd.Members[leader].Kill()
	return nil
}

// startMembers starts those that have ended.
func startMembers(ctx context.Context, d *director, _ int) error {
	for i, member := range d.stage.etcd.Members {
		select {
		case <-member.Ended:
		default:
			continue
		}
		if err := d.stage.etcd.StartMember(ctx, i, drainTime); err != nil {
			return err
		}
	}
	return nil
}

// weighNodes reads how much memory the nodes hold; from the second time on it
// fails where that has grown beyond what the collector leaves lying about.
func weighNodes(_ context.Context, d *director, _ int) error {
	var sum int64
	for _, n := range d.stage.nodes {
		memory, err := rig.ResidentMemory(n.PID())
		if err != nil {
			return err
		}
		sum += memory
	}
	d.progress.Say("the nodes hold %d MiB", sum>>20)
	before := d.weight
	if d.weight = sum; before > 0 {
		return judgeWeight(before, sum, len(d.stage.nodes))
	}
	return nil
}

// judgeWeight allows half as much again, and the collector's own share.
func judgeWeight(before, after int64, nodes int) error {
	const garbage = 32 << 20 // of one node
	if after > before+before/2+int64(nodes)*garbage {
		return fmt.Errorf("the nodes hold %d MiB, and held %d before: they grow", after>>20, before>>20)
	}
	return nil
}
