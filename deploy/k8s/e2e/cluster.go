package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// namespace is the namespace of the production overlay.
const namespace = "licet"

// cluster is a Kubernetes of its own: machines, the processes on them, and the place of
// its files.
type cluster struct {
	cfg     config
	tools   *programs
	report  *report
	pki     *authority
	logs    string
	control *machine
	nodes   []*node
	daemons []*daemon
	over    chan struct{} // closed once it is taken down
}

// nodeNames returns three names: etcd has three members, and no two of them run on one
// node.
func nodeNames() []string { return []string{"node-a", "node-b", "node-c"} }

func newCluster(cfg config, tools *programs, r *report) *cluster {
	c := &cluster{cfg: cfg, tools: tools, report: r, logs: cfg.out, over: make(chan struct{})}
	// Logs of the run before would only mislead.
	stopIf(errors.Join(os.RemoveAll(c.logs), os.MkdirAll(c.logs, 0o755), os.MkdirAll(workDir, 0o755)))
	c.pki = newAuthority(filepath.Join(workDir, "pki"))
	return c
}

// up starts everything.
func (c *cluster) up(ctx context.Context) {
	c.control = must(newMachine("control", filepath.Join(workDir, "control")))
	for i, name := range nodeNames() {
		m := must(newMachine(name, filepath.Join(workDir, name)))
		c.nodes = append(c.nodes, &node{m, i})
	}
	for _, do := range []func(context.Context){c.wire, c.startControl, c.startNames, c.joinNodes, c.addVolumes,
		c.startMetrics} {
		do(ctx)
	}
}

// environ returns the environment of all programs: where they find each other.
func (c *cluster) environ() []string {
	list := packageEnviron(c.tools.debian)
	for i, pair := range list {
		if path, ok := strings.CutPrefix(pair, "PATH="); ok {
			list[i] = "PATH=" + c.tools.bin + ":" + c.tools.folder + ":" + path
		}
	}
	return append(list, "KUBECONFIG="+c.pki.path("admin.kubeconfig"))
}

// kubectl runs kubectl against the cluster.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := c.control.onNetwork(ctx, c.tools.k8s("kubectl"), args...)
	cmd.Env = c.environ()
	return output(cmd)
}

// in runs kubectl in the namespace of the overlay.
func (c *cluster) in(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, append([]string{"--namespace", namespace}, args...)...)
}

// apply applies manifests.
func (c *cluster) apply(ctx context.Context, manifests string) {
	cmd := c.control.onNetwork(ctx, c.tools.k8s("kubectl"), "apply", "--server-side", "--filename", "-")
	cmd.Env = c.environ()
	cmd.Stdin = strings.NewReader(manifests)
	must(output(cmd))
}

// hint returns the command to look at a cluster that stays up.
func (c *cluster) hint() string {
	return fmt.Sprintf("sudo nsenter --target %s --net env KUBECONFIG=%s %s get pods -A", c.control.pid(),
		c.pki.path("admin.kubeconfig"), c.tools.k8s("kubectl"))
}

// stop ends everything. After a failure it first writes what Kubernetes knows next to the
// logs.
func (c *cluster) stop(failed bool) error {
	if failed && c.control != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		c.keepFacts(ctx)
		cancel()
		c.report.note("logs and what Kubernetes says of it all are in %s", c.logs)
	}
	close(c.over)
	for _, n := range c.nodes {
		n.end()
	}
	if c.control != nil {
		c.control.end()
	}
	for _, d := range c.daemons {
		<-d.over
	}
	// The kernel takes a moment to remove the killed processes of a cgroup.
	var err error
	for range 50 {
		if err = sweep(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// keepFacts writes what Kubernetes knows, and the logs of all pods.
func (c *cluster) keepFacts(ctx context.Context) {
	for name, args := range map[string][]string{
		"pods.txt":     {"get", "pods", "--all-namespaces", "--output", "wide"},
		"describe.txt": {"--namespace", namespace, "describe", "pods,statefulsets,deployments,jobs,hpa,pdb,pvc"},
		"volumes.txt":  {"get", "pv,pvc", "--all-namespaces", "--output", "wide"},
		"events.txt":   {"get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"},
		"nodes.txt":    {"describe", "nodes"},
	} {
		out, err := c.kubectl(ctx, args...)
		if err != nil {
			out += "\n" + err.Error()
		}
		_ = os.WriteFile(filepath.Join(c.logs, name), []byte(out), 0o644)
	}
	for _, n := range c.nodes {
		pods := filepath.Join(n.dir, "log", "pods")
		files, _ := filepath.Glob(filepath.Join(pods, "*", "*", "*.log"))
		for _, file := range files {
			name, _ := filepath.Rel(pods, file)
			text, err := os.ReadFile(file)
			if err == nil {
				_ = os.WriteFile(filepath.Join(c.logs, "pod-"+strings.ReplaceAll(name, "/", "-")), text, 0o644)
			}
		}
	}
}
