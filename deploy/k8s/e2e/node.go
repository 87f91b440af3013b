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

// pauseImage is what containerd runs in each pod's sandbox.
const pauseImage = "e2e.invalid/pause:1"

// node is a machine with a kubelet, a containerd and a kube-proxy.
type node struct {
	*machine
	number int
}

// zone is where the node says that it is: each is in another one.
func (n *node) zone() string { return "zone-" + n.name[len(n.name)-1:] }

// startContainers starts containerd.
func (c *cluster) startContainers(n *node) error {
	config := filepath.Join(n.dir, "containerd.toml")
	network := filepath.Join(n.dir, "cni")
	if err := errors.Join(
		os.MkdirAll(network, 0o755),
		os.WriteFile(config, []byte(fmt.Sprintf(containerdConfig, pauseImage, filepath.Join(c.tools.debian, "usr/sbin/runc"),
			filepath.Join(c.tools.debian, "usr/lib/cni"), network)), 0o644),
		os.WriteFile(filepath.Join(network, "pods.conflist"), []byte(fmt.Sprintf(podNetwork, nodePods(n.number))), 0o644),
	); err != nil {
		return err
	}
	_, err := c.start(n.machine, "containerd", nil, filepath.Join(c.tools.debian, "usr/bin/containerd"), "--config", config)
	return err
}

// containerdConfig: restrict_oom_score_adj, since not every root may lower that; no folder
// of its own outside of those that are this machine's alone.
const containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%s"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "%s"
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%s"
    conf_dir = "%s"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd-opt"
`

// podNetwork: a bridge on each node. Pods keep their addresses on the way to others, since
// all machines have routes to them.
const podNetwork = `{
  "cniVersion": "0.4.0", "name": "pods",
  "plugins": [{
    "type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "%s"}]], "routes": [{"dst": "0.0.0.0/0"}]}
  }]
}
`

// load puts an image on the node, as a pull would.
func (c *cluster) load(ctx context.Context, n *node, tar string) error {
	cmd := n.inside(ctx, filepath.Join(c.tools.debian, "usr/bin/ctr"), "--namespace", "k8s.io", "images", "import", tar)
	cmd.Env = c.environ()
	_, err := output(cmd)
	return err
}

// startKubelet starts the kubelet and kube-proxy, in cgroups of their own.
func (c *cluster) startKubelet(n *node) error {
	user := "system:node:" + n.name
	if err := c.pki.issue(n.name, user, "system:nodes", n.name, nodeIP(n.number)); err != nil {
		return err
	}
	kubeconfig, err := c.pki.kubeconfig(n.name)
	if err != nil {
		return err
	}
	if err := makeCgroup(cgroups + n.name); err != nil {
		return err
	}
	config, resolv := filepath.Join(n.dir, "kubelet.yaml"), filepath.Join(n.dir, "resolv.conf")
	text := fmt.Sprintf(kubeletConfig, nodeIP(n.number), c.pki.path("ca.crt"), c.pki.path(n.name+".crt"), c.pki.path(n.name+".key"),
		controlIP, cgroups+n.name, resolv)
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o644), os.WriteFile(resolv, []byte("nameserver "+controlIP+"\n"), 0o644)); err != nil {
		return err
	}
	if _, err := c.start(n.machine, "kubelet", nil, c.tools.k8s("kubelet"), "--config="+config, "--kubeconfig="+kubeconfig,
		"--hostname-override="+n.name, "--node-ip="+nodeIP(n.number), "--node-labels=topology.kubernetes.io/zone="+n.zone()); err != nil {
		return err
	}
	proxy := filepath.Join(n.dir, "kube-proxy.yaml")
	if err := os.WriteFile(proxy, []byte(fmt.Sprintf(proxyConfig, c.pki.path("kube-proxy.kubeconfig"), n.name, podRange)), 0o644); err != nil {
		return err
	}
	_, err = c.start(n.machine, "kube-proxy", nil, c.tools.k8s("kube-proxy"), "--config="+proxy)
	return err
}

// kubeletConfig: failCgroupV1 where the machine has no other, and no eviction, since the
// disk is not the check's own.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %s}}
authorization: {mode: Webhook}
tlsCertFile: %s
tlsPrivateKeyFile: %s
clusterDNS: ["%s"]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
resolvConf: %s
volumePluginDir: /var/lib/kubelet/volume-plugins
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "100Mi", nodefs.available: "1%%", imagefs.available: "1%%", nodefs.inodesFree: "1%%"}
nodeStatusUpdateFrequency: 5s
`

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %s}
hostnameOverride: %s
mode: iptables
clusterCIDR: %s
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

// makeCgroup makes one in each hierarchy. In that of processors nothing can run before it
// says which.
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

// hierarchies lists where cgroups are mounted: at one place, or in version 1 at several.
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
func (c *cluster) joinNodes(ctx context.Context) error {
	if err := c.pki.issue("kube-proxy", "system:kube-proxy", ""); err != nil {
		return err
	}
	if _, err := c.pki.kubeconfig("kube-proxy"); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := c.startContainers(n); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		if err := c.until(ctx, time.Minute, n.name+"'s containerd answers", func(ctx context.Context) error {
			cmd := n.inside(ctx, filepath.Join(c.tools.debian, "usr/bin/ctr"), "version")
			cmd.Env = c.environ()
			_, err := output(cmd)
			return err
		}); err != nil {
			return err
		}
		for _, tar := range c.tools.images {
			if err := c.load(ctx, n, tar); err != nil {
				return err
			}
		}
		if err := c.startKubelet(n); err != nil {
			return err
		}
	}
	return c.until(ctx, 2*time.Minute, "all nodes are ready", func(ctx context.Context) error {
		out, err := c.kubectl(ctx, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}`)
		if err != nil {
			return err
		}
		if ready := strings.Count(out, "=True"); ready < len(c.nodes) {
			return fmt.Errorf("%d of %d: %s", ready, len(c.nodes), out)
		}
		return nil
	})
}

// killContainer ends the first process of a container with SIGKILL, as the kernel does
// where memory runs out.
func (c *cluster) killContainer(ctx context.Context, n *node, id string) error {
	cmd := n.inside(ctx, filepath.Join(c.tools.debian, "usr/bin/ctr"), "--namespace", "k8s.io", "tasks", "kill", "--signal", fmt.Sprint(int(syscall.SIGKILL)), id)
	cmd.Env = c.environ()
	_, err := output(cmd)
	return err
}
