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
func (r *walk) update(ctx context.Context) error {
	return r.under(ctx, load{"rolling-restart", 15, 100 * time.Second}, func(ctx context.Context) error {
		began := time.Now()
		if err := r.blocks(ctx, "upgrade"); err != nil {
			return err
		}
		r.report.saw("rolled out within %.0f s", time.Since(began).Seconds())
		return r.runs(ctx, secondImage)
	})
}

// runs checks that all nodes run an image.
func (r *walk) runs(ctx context.Context, image string) error {
	out, err := r.in(ctx, "get", "pods", "--selector", "app.kubernetes.io/component=node", "--field-selector",
		"status.phase=Running", "--output",
		`jsonpath={range .items[*]}{.metadata.deletionTimestamp}{"|"}{.spec.containers[0].image}{" "}{end}`)
	if err != nil {
		return err
	}
	for _, pod := range strings.Fields(out) {
		if ending, has, _ := strings.Cut(pod, "|"); ending == "" && has != image {
			return fmt.Errorf("a node runs %s, and not %s", has, image)
		}
	}
	return nil
}

func (r *walk) rollback(ctx context.Context) error {
	if err := r.blocks(ctx, "rollback"); err != nil {
		return err
	}
	return r.runs(ctx, firstImage)
}

// kill kills a node's process, and deletes a member of etcd, under a load whose clients
// repeat what the answers allow.
func (r *walk) kill(ctx context.Context) error {
	// Otherwise the autoscaler might remove the killed pod.
	if err := r.waitForScaleDown(ctx); err != nil {
		return err
	}
	err := r.under(ctx, load{"node-loss", 15, 75 * time.Second}, func(ctx context.Context) error {
		if err := r.killNode(ctx); err != nil {
			return err
		}
		began := time.Now()
		if err := r.blocks(ctx, "member"); err != nil {
			return err
		}
		r.report.saw("the member was back after %.0f s", time.Since(began).Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	return r.verify(ctx)
}

// killNode sends SIGKILL to a node's process, and waits until the kubelet has started it
// again.
func (r *walk) killNode(ctx context.Context) error {
	// Not a pod that is ending anyway. The autoscaler removes the youngest pods first.
	out, err := r.in(ctx, "get", "pods", "--selector", "app.kubernetes.io/component=node",
		"--sort-by=.metadata.creationTimestamp", "--output",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.status.containerStatuses[0].containerID} `+
			`{.status.containerStatuses[0].restartCount} {.metadata.deletionTimestamp}{"\n"}{end}`)
	if err != nil {
		return err
	}
	var pod, on, id string
	var restarts int
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue
		}
		pod, on, id = fields[0], fields[1], strings.TrimPrefix(fields[2], "containerd://")
		if restarts, err = strconv.Atoi(fields[3]); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		break
	}
	if pod == "" {
		return fmt.Errorf("no node stays: %q", out)
	}
	for _, n := range r.nodes {
		if n.name == on {
			if err := r.killContainer(ctx, n, id); err != nil {
				return err
			}
		}
	}
	began := time.Now()
	if err := r.until(ctx, time.Minute, pod+" is ready again", func(ctx context.Context) error {
		out, err := r.in(ctx, "get", "pod", pod, "--output",
			"jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
		if err == nil && out != fmt.Sprintf("%d true", restarts+1) {
			err = fmt.Errorf("restarts and readiness: %s", out)
		}
		return err
	}); err != nil {
		return err
	}
	r.report.saw("the killed node was ready after %.0f s", time.Since(began).Seconds())
	return nil
}

// drain drains a machine, and checks that at no time more than one node and one member are
// away, and that a second drain may not evict another member.
func (r *walk) drain(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	least := map[string]int{"pdb/etcd": 99, "pdb/licet": 99}
	var wait sync.WaitGroup
	var broken error
	wait.Go(func() {
		for watching.Err() == nil {
			for thing, low := range least {
				have, err := r.number(watching, thing, ".status.currentHealthy")
				want, err2 := r.number(watching, thing, ".status.desiredHealthy")
				if err != nil || err2 != nil {
					continue
				}
				least[thing] = min(low, have)
				if have < want {
					broken = fmt.Errorf("%s: %d healthy, and %d must be", thing, have, want)
				}
			}
			select {
			case <-watching.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
	_, err := r.block(ctx, "drain")
	if err == nil {
		err = r.refusedDrain(ctx)
	}
	stop()
	wait.Wait()
	if err := errors.Join(err, broken); err != nil {
		return err
	}
	r.report.saw("never fewer healthy than: members %d, nodes %d", least["pdb/etcd"], least["pdb/licet"])
	if err := r.blocks(ctx, "uncordon"); err != nil {
		return err
	}
	return r.verify(ctx)
}

// refusedDrain tries to drain another machine of its member.
func (r *walk) refusedDrain(ctx context.Context) error {
	other := nodeNames()[2]
	_, err := r.kubectl(ctx, "drain", other, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=12s",
		"--pod-selector=app.kubernetes.io/name=etcd")
	if err == nil {
		return errors.New("a second member could be evicted, and with it the majority")
	}
	if !strings.Contains(err.Error(), "disruption budget") {
		return fmt.Errorf("the second drain was to be refused by the budget: %w", err)
	}
	_, err = r.kubectl(ctx, "uncordon", other)
	return err
}

// scale checks that the autoscaler adds nodes under load and removes them afterwards.
func (r *walk) scale(ctx context.Context) error {
	if err := r.until(ctx, 2*time.Minute, "the autoscaler has both metrics", func(ctx context.Context) error {
		out, err := r.block(ctx, "autoscaler")
		if err == nil && strings.Contains(out, "<unknown>") {
			err = fmt.Errorf("%s", out)
		}
		return err
	}); err != nil {
		return err
	}
	if err := r.waitForScaleDown(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := r.under(ctx, load{"reactivate", 120, 90 * time.Second}, func(ctx context.Context) error {
		err := r.until(ctx, 85*time.Second, "more than three nodes are ready",
			func(ctx context.Context) error { return r.replicas(ctx, 4, 99) })
		if err == nil {
			r.report.saw("scaled out within %.0f s", time.Since(began).Seconds())
		}
		return err
	}); err != nil {
		return err
	}
	began = time.Now()
	if err := r.waitForScaleDown(ctx); err != nil {
		return err
	}
	r.report.saw("and back within %.0f s", time.Since(began).Seconds())
	return nil
}

// waitForScaleDown waits until the autoscaler has as few nodes as it may have.
func (r *walk) waitForScaleDown(ctx context.Context) error {
	return r.until(ctx, 5*time.Minute, "three nodes", func(ctx context.Context) error { return r.replicas(ctx, 3, 3) })
}

// replicas checks how many nodes there are, and that all of them are ready.
func (r *walk) replicas(ctx context.Context, least, most int) error {
	have, err := r.number(ctx, "deployment/licet", ".status.replicas")
	ready, err2 := r.number(ctx, "deployment/licet", ".status.readyReplicas")
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if ready < least || have > most {
		return fmt.Errorf("%d nodes, %d of them ready", have, ready)
	}
	return nil
}
