package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// update rolls out a new version under a load whose clients repeat nothing but refused
// connections.
func (r *walk) update(ctx context.Context) {
	r.under(ctx, load{"rolling-restart", 15, 100 * time.Second}, func(ctx context.Context) {
		began := time.Now()
		r.blocks(ctx, "upgrade")
		r.report.saw("rolled out within %.0f s", time.Since(began).Seconds())
		r.runs(ctx, secondImage)
	})
}

// runs checks that all nodes run an image.
func (r *walk) runs(ctx context.Context, image string) {
	out := must(r.in(ctx, "get", "pods", "--selector", "app.kubernetes.io/component=node", "--field-selector",
		"status.phase=Running", "--output",
		`jsonpath={range .items[*]}{.metadata.deletionTimestamp}{"|"}{.spec.containers[0].image}{" "}{end}`))
	for _, pod := range strings.Fields(out) {
		if ending, has, _ := strings.Cut(pod, "|"); ending == "" && has != image {
			stop("a node runs %s, and not %s", has, image)
		}
	}
}

func (r *walk) rollback(ctx context.Context) {
	r.blocks(ctx, "rollback")
	r.runs(ctx, firstImage)
}

// kill kills a node's process, and deletes a member of etcd, under a load whose clients
// repeat what the answers allow.
func (r *walk) kill(ctx context.Context) {
	// Otherwise the autoscaler might remove the killed pod.
	r.waitForScaleDown(ctx)
	r.under(ctx, load{"node-loss", 15, 75 * time.Second}, func(ctx context.Context) {
		r.killNode(ctx)
		began := time.Now()
		r.blocks(ctx, "member")
		r.report.saw("the member was back after %.0f s", time.Since(began).Seconds())
	})
	r.verify(ctx)
}

// killNode sends SIGKILL to a node's process, and waits until the kubelet has started it
// again.
func (r *walk) killNode(ctx context.Context) {
	// Not a pod that is ending anyway. The autoscaler removes the youngest pods first.
	out := must(r.in(ctx, "get", "pods", "--selector", "app.kubernetes.io/component=node",
		"--sort-by=.metadata.creationTimestamp", "--output",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.containerStatuses[0].containerID} `+
			`{.status.containerStatuses[0].restartCount} {.metadata.deletionTimestamp}{"\n"}{end}`))
	var pod, on, id string
	var restarts int
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue
		}
		pod, on, id = fields[0], fields[1], strings.TrimPrefix(fields[2], "containerd://")
		restarts = must(strconv.Atoi(fields[3]))
		break
	}
	if pod == "" {
		stop("no node stays: %q", out)
	}
	for _, n := range r.nodes {
		if n.name == on {
			r.killContainer(ctx, n, id)
		}
	}
	began := time.Now()
	r.until(ctx, time.Minute, pod+" is ready again", func(ctx context.Context) {
		out := must(r.in(ctx, "get", "pod", pod, "--output",
			"jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}"))
		if out != fmt.Sprintf("%d true", restarts+1) {
			stop("restarts and readiness: %s", out)
		}
	})
	r.report.saw("the killed node was ready after %.0f s", time.Since(began).Seconds())
}

// drain drains a machine, and checks that at no time more than one node and one member are
// away, and that a second drain may not evict another member.
func (r *walk) drain(ctx context.Context) {
	polling, stopPolling := context.WithCancel(ctx)
	defer stopPolling()
	least := map[string]int{"pdb/etcd": 99, "pdb/licet": 99}
	var wait sync.WaitGroup
	var broken error
	wait.Go(func() {
		for polling.Err() == nil {
			for thing, low := range least {
				have, err := r.number(polling, thing, ".status.currentHealthy")
				want, err2 := r.number(polling, thing, ".status.desiredHealthy")
				if err != nil || err2 != nil {
					continue
				}
				least[thing] = min(low, have)
				if have < want {
					broken = fmt.Errorf("%s: %d healthy, and %d must be", thing, have, want)
				}
			}
			select {
			case <-polling.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
	err := attempt(func() {
		r.block(ctx, "drain")
		r.refusedDrain(ctx)
	})
	stopPolling()
	wait.Wait()
	stopIf(errors.Join(err, broken))
	r.report.saw("never fewer healthy than: members %d, nodes %d", least["pdb/etcd"], least["pdb/licet"])
	r.blocks(ctx, "uncordon")
	r.verify(ctx)
}

// refusedDrain tries to drain another machine of its member.
func (r *walk) refusedDrain(ctx context.Context) {
	other := nodeNames()[2]
	_, err := r.kubectl(ctx, "drain", other, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=12s",
		"--pod-selector=app.kubernetes.io/name=etcd")
	if err == nil {
		stop("a second member could be evicted, and with it the majority")
	}
	if !strings.Contains(err.Error(), "disruption budget") {
		stop("the second drain was to be refused by the budget: %w", err)
	}
	must(r.kubectl(ctx, "uncordon", other))
}

// scale checks that the autoscaler adds nodes under load and removes them afterwards.
func (r *walk) scale(ctx context.Context) {
	r.until(ctx, 2*time.Minute, "the autoscaler has both metrics", func(ctx context.Context) {
		if out := r.block(ctx, "autoscaler"); strings.Contains(out, "<unknown>") {
			stop("%s", out)
		}
	})
	r.waitForScaleDown(ctx)
	began := time.Now()
	r.under(ctx, load{"reactivate", 120, 90 * time.Second}, func(ctx context.Context) {
		r.until(ctx, 85*time.Second, "more than three nodes are ready",
			func(ctx context.Context) { r.replicas(ctx, 4, 99) })
		r.report.saw("scaled out within %.0f s", time.Since(began).Seconds())
	})
	began = time.Now()
	r.waitForScaleDown(ctx)
	r.report.saw("and back within %.0f s", time.Since(began).Seconds())
}

// waitForScaleDown waits until the autoscaler has as few nodes as it may have.
func (r *walk) waitForScaleDown(ctx context.Context) {
	r.until(ctx, 5*time.Minute, "three nodes", func(ctx context.Context) { r.replicas(ctx, 3, 3) })
}

// replicas checks how many nodes there are, and that all of them are ready.
func (r *walk) replicas(ctx context.Context, least, most int) {
	have := must(r.number(ctx, "deployment/licet", ".status.replicas"))
	ready := must(r.number(ctx, "deployment/licet", ".status.readyReplicas"))
	if ready < least || have > most {
		stop("%d nodes, %d of them ready", have, ready)
	}
}
