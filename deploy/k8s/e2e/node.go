package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// pauseImage is the image that containerd runs in each pod's sandbox.
const pauseImage = "e2e.invalid/pause:1"

// node is a machine with a kubelet, a containerd and a kube-proxy.
type node struct {
	*machine
	number int
}

// zone returns the node's zone. Each node has another zone.
func (n *node) zone() string { return "zone-" + n.name[len(n.name)-1:] }

// startContainers starts containerd.
func (c *cluster) startContainers(n *node) {
	config := filepath.Join(n.dir, "containerd.toml")
	network := filepath.Join(n.dir, "cni")
	stopIf(errors.Join(
		os.MkdirAll(network, 0o755),
		os.WriteFile(config,
			[]byte(fmt.Sprintf(containerdConfig, pauseImage, filepath.Join(c.tools.debian, "usr/sbin/runc"),
				filepath.Join(c.tools.debian, "usr/lib/cni"), network)), 0o644),
		os.WriteFile(filepath.Join(network, "pods.conflist"), []byte(fmt.Sprintf(podNetwork, nodePods(n.number))),
			0o644),
	))
	c.start(n.machine, "containerd", filepath.Join(c.tools.debian, "usr/bin/containerd"), "--config",
		config)
}

// load imports an image on the node, in place of a pull.
func (c *cluster) load(ctx context.Context, n *node, tar string) {
	cmd := n.inside(ctx, filepath.Join(c.tools.debian, "usr/bin/ctr"), "--namespace", "k8s.io", "images", "import", tar)
	cmd.Env = c.environ()
	must(output(cmd))
}

// startKubelet starts the kubelet and kube-proxy, in cgroups of their own.
func (c *cluster) startKubelet(n *node) {
	user := "system:node:" + n.name
	c.pki.issue(n.name, user, "system:nodes", n.name, nodeIP(n.number))
	kubeconfig := c.pki.kubeconfig(n.name)
	stopIf(makeCgroup(cgroups + n.name))
	config, resolv := filepath.Join(n.dir, "kubelet.yaml"), filepath.Join(n.dir, "resolv.conf")
	text := fmt.Sprintf(kubeletConfig, nodeIP(n.number), c.pki.path("ca.crt"), c.pki.path(n.name+".crt"),
		c.pki.path(n.name+".key"), controlIP, cgroups+n.name, resolv)
	stopIf(errors.Join(os.WriteFile(config, []byte(text), 0o644),
		os.WriteFile(resolv, []byte("nameserver "+controlIP+"\n"), 0o644)))
	c.start(n.machine, "kubelet", c.tools.k8s("kubelet"), "--config="+config,
		"--kubeconfig="+kubeconfig, "--hostname-override="+n.name, "--node-ip="+nodeIP(n.number),
		"--node-labels=topology.kubernetes.io/zone="+n.zone())
	proxy := filepath.Join(n.dir, "kube-proxy.yaml")
	stopIf(os.WriteFile(proxy,
		[]byte(fmt.Sprintf(proxyConfig, c.pki.path("kube-proxy.kubeconfig"), n.name, podRange)), 0o644))
	c.start(n.machine, "kube-proxy", c.tools.k8s("kube-proxy"), "--config="+proxy)
}

// makeCgroup makes a cgroup in each hierarchy. In the hierarchy of processors nothing can
// run before the cgroup says which.
func makeCgroup(name string) error {
	for _, hierarchy := range hierarchies() {
		dir := filepath.Join(hierarchy, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, which := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(hierarchy, which))
			if err != nil || strings.TrimSpace(string(value)) == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, which), value, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// hierarchies returns where cgroups are mounted: at one place, or in version 1 at several.
func hierarchies() []string {
	var list []string
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2" && fields[1] == "/sys/fs/cgroup") {
			list = append(list, fields[1])
		}
	}
	return list
}

// joinNodes starts all nodes and waits until Kubernetes may use them.
func (c *cluster) joinNodes(ctx context.Context) {
	c.pki.issue("kube-proxy", "system:kube-proxy", "")
	c.pki.kubeconfig("kube-proxy")
	for _, n := range c.nodes {
		c.startContainers(n)
	}
	for _, n := range c.nodes {
		c.until(ctx, time.Minute, n.name+"'s containerd answers", func(ctx context.Context) {
			cmd := n.inside(ctx, filepath.Join(c.tools.debian, "usr/bin/ctr"), "version")
			cmd.Env = c.environ()
			must(output(cmd))
		})
		for _, tar := range c.tools.images {
			c.load(ctx, n, tar)
		}
		c.startKubelet(n)
	}
	c.until(ctx, 2*time.Minute, "all nodes are ready", func(ctx context.Context) {
		out := must(c.kubectl(ctx, "get", "nodes", "-o",
			`jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`))
		if ready := strings.Count(out, "=True"); ready < len(c.nodes) {
			stop("%d of %d: %s", ready, len(c.nodes), out)
		}
	})
}

// killContainer sends SIGKILL to the first process of a container, as the kernel does when
// memory runs out.
func (c *cluster) killContainer(ctx context.Context, n *node, id string) {
	cmd := n.inside(ctx, filepath.Join(c.tools.debian, "usr/bin/ctr"), "--namespace", "k8s.io", "tasks", "kill",
		"--signal", fmt.Sprint(int(syscall.SIGKILL)), id)
	cmd.Env = c.environ()
	must(output(cmd))
}
