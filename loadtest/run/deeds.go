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
			d.service.stage.Crash(node)
			return nil
		}},
		"drain": {onNode: true,
			do: func(_ context.Context, d *director, node int) error { return d.service.stage.End(node) }},
		"restart all":   {do: func(ctx context.Context, d *director, _ int) error { return d.service.stage.Roll(ctx) }},
		"kill leader":   {do: killLeader},
		"start members": {do: startMembers},
		"weigh nodes":   {do: weighNodes},
	}
}

func killLeader(ctx context.Context, d *director, _ int) error {
	etcd := d.service.stage.Etcd
	leader, err := etcd.Leader(ctx)
	if err != nil {
		return err
	}
	etcd.Members[leader].Kill()
	return nil
}

// startMembers starts the members again that have ended.
func startMembers(ctx context.Context, d *director, _ int) error {
	etcd := d.service.stage.Etcd
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

// weighNodes reads how much memory the nodes hold. From the second time on it fails if
// the memory has grown by more than garbage.
func weighNodes(_ context.Context, d *director, _ int) error {
	var sum int64
	for _, n := range d.service.stage.Nodes {
		memory, err := rig.MemoryOf(n.PID())
		if err != nil {
			return err
		}
		sum += memory.Resident
	}
	d.progress.Say("the nodes hold %d MiB", sum>>20)
	before := d.weight
	if d.weight = sum; before > 0 {
		return checkWeight(before, sum, len(d.service.stage.Nodes))
	}
	return nil
}

// checkWeight allows half as much again, and garbage.
func checkWeight(before, after int64, nodes int) error {
	const garbage = 32 << 20 // of one node
	if after > before+before/2+int64(nodes)*garbage {
		return fmt.Errorf("the nodes hold %d MiB, and held %d before: they grow", after>>20, before>>20)
	}
	return nil
}
