package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"licet/loadtest/rig"
)

// What whoever runs a store does to it, timed.

// leastCompaction is how long activations are measured for while history is
// compacted, however soon that is done.
const leastCompaction = 500 * time.Millisecond

// compact drops all history while activations go on as before.
func (c *cell) compact(ctx context.Context) error {
	c.progress.Step("compacting all history, with %.0f activations a second", c.rate)
	p := c.probe()
	var took time.Duration
	o, err := p.latencies(ctx, c.rate, min(leastCompaction, c.cfg.Span), func() error {
		began := time.Now()
		err := c.etcd.compact(ctx)
		took = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	c.learn(p)
	c.report.inform("compaction of all history", "s", took.Seconds())
	c.informLatencies("while compacting", o)
	now, err := look(ctx, c.etcd, c.node)
	if err != nil {
		return err
	}
	c.informDatabase("compacted", now)
	peak, err := rig.MemoryOf(c.etcd.Members[0].PID(), "VmHWM")
	if err != nil {
		return err
	}
	c.report.inform("compacted: peak RSS of etcd", "MiB", float64(peak)/mebibyte)
	return nil
}

// defragment gives the free space back, and lets etcd's memory settle.
func (c *cell) defragment(ctx context.Context) error {
	c.progress.Step("defragmenting")
	began := time.Now()
	if err := c.etcd.defragment(ctx); err != nil {
		return err
	}
	c.report.inform("defragmentation, in which etcd serves nothing", "s", time.Since(began).Seconds())
	c.progress.Step("letting etcd's memory settle, up to %v", c.cfg.Settle)
	now, err := c.settled(ctx)
	if err != nil {
		return err
	}
	c.informDatabase("defragmented", now)
	c.report.add("shrunk", "", c.share(now.Database))
	c.report.add("bytes", "compacted and defragmented", float64(now.Database)/float64(c.bound()))
	return nil
}

// settled waits until etcd's memory shrinks no more: the runtime gives pages
// back little by little.
func (c *cell) settled(ctx context.Context) (now fillPoint, err error) {
	const looks, enough = 30, 5 // looks in all, and of these without a change
	least, since := int64(math.MaxInt64), 0
	for range looks {
		rest(ctx, c.cfg.Settle/looks)
		if now, err = look(ctx, c.etcd, c.node); err != nil {
			return now, err
		}
		if now.EtcdRSS < least-least/100 {
			least, since = now.EtcdRSS, 0
		} else if since++; since == enough {
			break
		}
	}
	return now, ctx.Err()
}

// informDatabase tells what database and etcd come to.
func (c *cell) informDatabase(when string, p fillPoint) {
	c.report.inform(when+": devices bound", "", float64(c.bound()))
	c.report.inform(when+": database", "MiB", float64(p.Database)/mebibyte)
	c.report.inform(when+": database in use", "MiB", float64(p.InUse)/mebibyte)
	c.report.inform(when+": database, by bound device", "B", float64(p.Database)/float64(c.bound()))
	c.report.inform(when+": RSS of etcd", "MiB", float64(p.EtcdRSS)/mebibyte)
	c.report.inform(when+": RSS of etcd but for the mapped database", "MiB", float64(p.EtcdAnonymous)/mebibyte)
	c.report.inform(when+": RSS of the node", "MiB", float64(p.NodeRSS)/mebibyte)
}

// restartWithHistory is what a crash comes to before anything is compacted.
func (c *cell) restartWithHistory(ctx context.Context) error {
	if err := c.restartEtcd(ctx, "etcd with history, SIGKILL", false); err != nil {
		return err
	}
	return c.restartNode(ctx, "node: start before the full store")
}

func (c *cell) restart(ctx context.Context) error {
	if err := c.restartEtcd(ctx, "etcd, SIGTERM", true); err != nil {
		return err
	}
	if err := c.restartEtcd(ctx, "etcd, SIGKILL", false); err != nil {
		return err
	}
	if err := c.restartNode(ctx, "node: start after it was compacted"); err != nil {
		return err
	}
	now, err := c.settled(ctx)
	if err != nil {
		return err
	}
	c.report.inform("restarted: RSS of etcd", "MiB", float64(now.EtcdRSS)/mebibyte)
	c.report.inform("restarted: RSS of etcd but for the mapped database", "MiB", float64(now.EtcdAnonymous)/mebibyte)
	return nil
}

// restartEtcd restarts etcd under the running node.
func (c *cell) restartEtcd(ctx context.Context, name string, softly bool) error {
	c.progress.Step("restarting %s", name)
	down, up, err := c.etcd.restart(ctx, softly)
	if err != nil {
		return err
	}
	if softly {
		c.report.inform(name+": until it has ended", "s", down.Seconds())
	}
	c.report.inform(name+": from its start to a linearizable read", "s", up.Seconds())
	began := time.Now()
	if err := c.node.Await(ctx); err != nil {
		return fmt.Errorf("the node after a restart of etcd: %w: %s", err, c.node.LogTail())
	}
	c.report.inform(name+": from then until the running node is ready again", "s", time.Since(began).Seconds())
	return nil
}

// restartNode gives the store a node that knows nothing of it. How the one
// before ended is all the same to the new one.
func (c *cell) restartNode(ctx context.Context, name string) error {
	c.node.Kill()
	began := time.Now()
	fresh, err := c.licet.StartNode(ctx, c.etcd.Cluster)
	if err != nil {
		return err
	}
	c.report.inform(name+" until it is ready", "s", time.Since(began).Seconds())
	c.node, c.filler.node = fresh, fresh
	return nil
}

// verify has licet prove that all of the store is as it should be.
func (c *cell) verify(ctx context.Context) error {
	c.progress.Step("licet store verify")
	run, err := c.tool(ctx, "store", "verify", "--output", "json")
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	var found struct {
		Summary struct {
			Keys       float64 `json:"keys"`
			Violations float64 `json:"violations"`
			Error      string  `json:"error"`
		} `json:"summary"`
	}
	if parsed := json.Unmarshal(run.out, &found); parsed != nil || found.Summary.Error != "" {
		return errors.Join(err, parsed, errors.New(found.Summary.Error))
	}
	c.report.add("violations", "", found.Summary.Violations)
	c.report.inform("licet store verify", "s", run.took.Seconds())
	c.report.inform("licet store verify: peak RSS", "MiB", float64(run.peak)/mebibyte)
	c.report.inform("licet store verify: keys", "", found.Summary.Keys)
	return nil
}

func (c *cell) backUp(ctx context.Context) error {
	c.progress.Step("licet store backup")
	file := filepath.Join(c.dir, "backup.db")
	run, err := c.tool(ctx, "store", "backup", file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	c.report.inform("licet store backup", "s", run.took.Seconds())
	c.report.inform("licet store backup: peak RSS", "MiB", float64(run.peak)/mebibyte)
	c.report.inform("licet store backup: the file", "MiB", float64(info.Size())/mebibyte)
	return nil
}

// toolRun is what a command came to.
type toolRun struct {
	out  []byte
	took time.Duration
	peak int64 // RSS
}

// tool runs a subcommand of licet on the store.
func (c *cell) tool(ctx context.Context, args ...string) (run toolRun, err error) {
	cmd := exec.CommandContext(ctx, c.licet.Binary, append(args, "--etcd-endpoints", strings.Join(c.etcd.Endpoints, ","))...)
	cmd.Env = rig.PlainEnvironment()
	began := time.Now()
	run.out, err = cmd.Output()
	run.took = time.Since(began)
	if cmd.ProcessState != nil {
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			run.peak = int64(usage.Maxrss) << 10 // Linux counts in KiB
		}
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("licet %s: %w: %s", args[0], err, failed.Stderr)
	}
	return run, err
}
