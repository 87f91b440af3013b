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
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/loadtest/rig"
)

// The tasks that an operator has with a store, and how long each takes.

const (
	// leastCompaction is how long activations are measured at least while history is compacted.
	leastCompaction = 500 * time.Millisecond
	// longestCompaction is how long they are measured at most, since they add devices.
	longestCompaction = time.Minute
	// restartTimeout is how long a member may take to end, and to read its whole store.
	restartTimeout = 15 * time.Minute
)

// compact drops all history while activations continue as before.
func (f *full) compact(ctx context.Context) {
	f.progress.Step("compacting all history, with %.0f activations a second", f.rate)
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var took time.Duration
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		defer stop()
		select {
		case <-begun:
		case <-loading.Done():
			done <- loading.Err()
			return
		}
		began := time.Now()
		err := f.dropHistory(ctx)
		took = time.Since(began)
		rig.Rest(ctx, min(leastCompaction, f.cfg.Span)-took)
		done <- err
	}()
	f.salt += saltsOfProbe
	load := opened(loading, f.rate, longestCompaction)
	var s *sample
	err := attempt(func() {
		s = f.probe(ctx, openWorkers, 0, f.salt, func(d driver) *outcome {
			close(begun)
			return load(d)
		})
	})
	stop()
	stopIf(errors.Join(err, <-done))
	f.report.inform("compaction of all history", "s", took.Seconds())
	f.informLatencies("while compacting", s)
	now := look(ctx, f.Etcd, f.node)
	f.informDatabase("compacted", now)
	memory := must(rig.MemoryOf(f.Etcd.Members[0].PID()))
	f.report.inform("compacted: peak RSS of etcd", "MiB", float64(memory.Peak)/mebibyte)
}

// dropHistory compacts up to the last revision, and returns once the history is gone
// from the database.
func (f *full) dropHistory(ctx context.Context) error {
	status, err := f.Etcd.Admin.Status(ctx, f.Etcd.Endpoints[0])
	if err != nil {
		return fmt.Errorf("read etcd's revision: %w", err)
	}
	_, err = f.Etcd.Admin.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical())
	return err
}

// defragment returns free space of the database to the disk, and waits until etcd shrinks no more.
func (f *full) defragment(ctx context.Context) {
	f.progress.Step("defragmenting")
	began := time.Now()
	must(f.Etcd.Admin.Defragment(ctx, f.Etcd.Endpoints[0]))
	f.report.inform("defragmentation, in which etcd serves nothing", "s", time.Since(began).Seconds())
	f.progress.Step("waiting until etcd shrinks no more")
	now := f.steady(ctx)
	f.informDatabase("defragmented", now)
	f.report.add("capacity", "database compacted and defragmented ÷ quota", f.share(now.Database))
	f.report.add("bytes", "compacted and defragmented", float64(now.Database)/float64(f.bound()))
}

// steady waits until etcd's memory shrinks no more: Go's runtime returns pages to the
// kernel little by little.
func (f *full) steady(ctx context.Context) (now fillPoint) {
	const looks, enough = 30, 5 // looks in all, and looks in a row without a change
	least, since := int64(math.MaxInt64), 0
	for range looks {
		rig.Rest(ctx, f.cfg.Quiet/5)
		now = look(ctx, f.Etcd, f.node)
		if now.EtcdRSS < least-least/100 {
			least, since = now.EtcdRSS, 0
		} else if since++; since == enough {
			break
		}
	}
	stopIf(ctx.Err())
	return now
}

// restartWithHistory is a crash before anything was compacted.
func (f *full) restartWithHistory(ctx context.Context) {
	f.restartEtcd(ctx, "etcd with history, SIGKILL", false)
	f.restartNode(ctx, "node: start before the full store")
}

func (f *full) restart(ctx context.Context) {
	f.restartEtcd(ctx, "etcd, SIGTERM", true)
	f.restartEtcd(ctx, "etcd, SIGKILL", false)
	f.restartNode(ctx, "node: start after it was compacted")
	now := f.steady(ctx)
	f.report.inform("restarted: RSS of etcd", "MiB", float64(now.EtcdRSS)/mebibyte)
	f.report.inform("restarted: RSS of etcd but for the mapped database", "MiB", float64(now.EtcdAnonymous)/mebibyte)
}

// restartEtcd restarts etcd while the node runs on.
func (f *full) restartEtcd(ctx context.Context, name string, softly bool) {
	f.progress.Step("restarting %s", name)
	began := time.Now()
	if softly {
		stopIf(f.Etcd.Members[0].End(restartTimeout))
		f.report.inform(name+": until it has ended", "s", time.Since(began).Seconds())
	} else {
		f.Etcd.Members[0].Kill()
	}
	began = time.Now()
	stopIf(f.Etcd.StartMember(ctx, 0, restartTimeout))
	f.read(ctx)
	f.report.inform(name+": from its start to a linearizable read", "s", time.Since(began).Seconds())
	began = time.Now()
	if err := f.node.Await(ctx); err != nil {
		stopIf(fmt.Errorf("the node after a restart of etcd: %w: %s", err, f.node.LogTail()))
	}
	f.report.inform(name+": from then until the running node is ready again", "s", time.Since(began).Seconds())
}

// read makes a linearizable read over a new connection: a connection from before the
// restart would wait before it tries again.
func (f *full) read(ctx context.Context) {
	client := must(rig.NewEtcdClient(f.Etcd.Endpoints))
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	for {
		_, err := client.Get(ctx, "/")
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			stopIf(fmt.Errorf("read from etcd after its restart: %w", err))
		}
		rig.Rest(ctx, time.Millisecond)
	}
}

// restartNode replaces the node by a new node with an empty cache.
func (f *full) restartNode(ctx context.Context, name string) {
	began := time.Now()
	f.renewNode(ctx)
	f.report.inform(name+" until it is ready", "s", time.Since(began).Seconds())
	f.seeder, f.filler.node = f.node, f.node
}

// verify runs licet store verify.
func (f *full) verify(ctx context.Context) {
	f.progress.Step("licet store verify")
	out, err := f.tool(ctx, "licet store verify", "store", "verify", "--output", "json")
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		stopIf(err)
	}
	var found struct {
		Summary struct {
			Keys       float64 `json:"keys"`
			Violations float64 `json:"violations"`
			Error      string  `json:"error"`
		} `json:"summary"`
	}
	if parsed := json.Unmarshal(out, &found); parsed != nil || found.Summary.Error != "" {
		stopIf(errors.Join(err, parsed, errors.New(found.Summary.Error)))
	}
	f.report.add("capacity", "violations that licet store verify finds", found.Summary.Violations)
	f.report.inform("licet store verify: keys", "", found.Summary.Keys)
}

func (f *full) backUp(ctx context.Context) {
	f.progress.Step("licet store backup")
	file := filepath.Join(f.setup.Dir, "backup.db")
	must(f.tool(ctx, "licet store backup", "store", "backup", file))
	info := must(os.Stat(file))
	f.report.inform("licet store backup: the file", "MiB", float64(info.Size())/mebibyte)
}

// tool runs a subcommand of licet on the store, and reports its time and peak memory.
func (f *full) tool(ctx context.Context, name string, args ...string) ([]byte, error) {
	began := time.Now()
	out, state, err := f.Licet.Measured(ctx, append(args, "--etcd-endpoints", f.Endpoints())...)
	f.report.inform(name, "s", time.Since(began).Seconds())
	if state != nil {
		used := state.SysUsage().(*syscall.Rusage)
		f.report.inform(name+": peak RSS", "MiB", float64(used.Maxrss)/1024) // Linux counts in KiB
	}
	return out, err
}
