package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// startControl starts the control plane as in other clusters: its processes have users of
// their own, with what their roles allow.
func (c *cluster) startControl(ctx context.Context) {
	pki := c.pki
	for _, who := range []struct {
		name, user, group string
		hosts             []string
	}{
		{"apiserver", "kube-apiserver", "", []string{controlIP, apiServiceIP, "127.0.0.1", "kubernetes",
			"kubernetes.default", "kubernetes.default.svc"}},
		{"admin", "admin", "system:masters", nil},
		{"front-proxy", "front-proxy", "", nil},
		{"controller-manager", "system:kube-controller-manager", "", nil},
		{"scheduler", "system:kube-scheduler", "", nil},
		{"service-accounts", "service-accounts", "", nil},
		// For the add-ons of the cluster, as an administrator: this check does not try their roles.
		{"addons", "addons", "system:masters",
			[]string{"metrics-server.kube-system.svc", "prometheus-adapter.kube-system.svc"}},
	} {
		pki.issue(who.name, who.user, who.group, who.hosts...)
		pki.kubeconfig(who.name)
	}
	c.start(c.control, "etcd", c.tools.k8s("etcd"),
		"--data-dir", filepath.Join(c.control.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=default=http://127.0.0.1:2380")
	c.start(c.control, "kube-apiserver", c.tools.k8s("kube-apiserver"),
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--advertise-address="+controlIP,
		"--secure-port=6443", "--service-cluster-ip-range="+serviceRange, "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file="+pki.path("ca.crt"), "--tls-cert-file="+pki.path("apiserver.crt"),
		"--tls-private-key-file="+pki.path("apiserver.key"),
		"--kubelet-client-certificate="+pki.path("admin.crt"), "--kubelet-client-key="+pki.path("admin.key"),
		"--kubelet-certificate-authority="+pki.path("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file="+pki.path("service-accounts.key"),
		"--service-account-key-file="+pki.path("service-accounts.pub"),
		"--requestheader-client-ca-file="+pki.path("ca.crt"), "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+pki.path("front-proxy.crt"), "--proxy-client-key-file="+pki.path("front-proxy.key"),
		// Add-ons are processes beside it, with endpoints and without pods.
		"--enable-aggregator-routing=true")
	c.until(ctx, 2*time.Minute, "the API server is ready", func(ctx context.Context) {
		must(c.kubectl(ctx, "get", "--raw", "/readyz"))
	})
	c.startManager()
	c.start(c.control, "kube-scheduler", c.tools.k8s("kube-scheduler"),
		"--kubeconfig="+pki.path("scheduler.kubeconfig"),
		"--authentication-kubeconfig="+pki.path("scheduler.kubeconfig"),
		"--authorization-kubeconfig="+pki.path("scheduler.kubeconfig"), "--leader-elect=false",
		"--bind-address=127.0.0.1")
}

// startManager starts the controllers. The autoscaler looks more often than by default,
// and trusts a pod's first seconds sooner, so that the check does not take an hour.
func (c *cluster) startManager() {
	own := c.pki.path("controller-manager.kubeconfig")
	c.start(c.control, "kube-controller-manager", c.tools.k8s("kube-controller-manager"),
		"--kubeconfig="+own, "--authentication-kubeconfig="+own, "--authorization-kubeconfig="+own,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pki.path("service-accounts.key"),
		"--root-ca-file="+c.pki.path("ca.crt"), "--cluster-cidr="+podRange, "--allocate-node-cidrs=false",
		// By default in /usr, which is not this machine's alone.
		"--flex-volume-plugin-dir=/var/lib/volume-plugins",
		"--horizontal-pod-autoscaler-sync-period=5s", "--horizontal-pod-autoscaler-cpu-initialization-period=10s",
		"--horizontal-pod-autoscaler-initial-readiness-delay=5s")
}

// startNames starts CoreDNS at the address that kubelets give to pods.
func (c *cluster) startNames(ctx context.Context) {
	file := filepath.Join(c.control.dir, "Corefile")
	text := fmt.Sprintf(`.:53 {
	bind %s
	errors
	kubernetes cluster.local in-addr.arpa {
		kubeconfig %s
		ttl 5
	}
	cache 5
}
`, controlIP, c.pki.path("addons.kubeconfig"))
	stopIf(os.WriteFile(file, []byte(text), 0o600))
	c.start(c.control, "coredns", c.tools.k8s("coredns"), "-conf", file)
}

// startMetrics starts what the autoscaler asks: metrics-server for CPU, and Prometheus
// with its adapter for the nodes' own metric, by the rule in deploy/k8s.
func (c *cluster) startMetrics(ctx context.Context) {
	pki, own := c.pki, c.pki.path("addons.kubeconfig")
	serving := []string{"--tls-cert-file=" + pki.path("addons.crt"), "--tls-private-key-file=" + pki.path("addons.key"),
		"--authentication-kubeconfig=" + own, "--authorization-kubeconfig=" + own}
	c.start(c.control, "metrics-server", c.tools.k8s("metrics-server"), append(serving,
		"--secure-port=4443", "--kubeconfig="+own, "--kubelet-certificate-authority="+pki.path("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP", "--metric-resolution=10s",
		"--kubelet-request-timeout=5s")...)
	config := filepath.Join(c.control.dir, "prometheus.yml")
	targets := filepath.Join(c.control.dir, "targets.json")
	stopIf(os.WriteFile(config, []byte(fmt.Sprintf(prometheusConfig, targets)), 0o600))
	go c.findTargets(targets)
	c.start(c.control, "prometheus", c.tools.prometheus, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(c.control.dir, "prometheus"),
		"--web.listen-address="+controlIP+":9090")
	c.start(c.control, "prometheus-adapter", c.tools.k8s("prometheus-adapter"), append(serving,
		"--secure-port=6444", "--lister-kubeconfig="+own, "--prometheus-url=http://"+controlIP+":9090",
		"--metrics-relist-interval=10s",
		"--config="+filepath.Join(c.cfg.root, "deploy/k8s/metrics-adapter.yaml"))...)
	var text strings.Builder
	for _, api := range []struct {
		group, version, service string
		port                    int
	}{
		{"metrics.k8s.io", "v1beta1", "metrics-server", 4443},
		{"custom.metrics.k8s.io", "v1beta1", "prometheus-adapter", 6444},
		{"custom.metrics.k8s.io", "v1beta2", "prometheus-adapter", 6444},
	} {
		fmt.Fprintf(&text, aggregated, api.service, api.port, api.service, controlIP, api.port,
			api.version, api.group, api.group, api.version, api.service, api.port, pki.bundle())
	}
	c.apply(ctx, text.String())
	c.until(ctx, time.Minute, "the metrics' APIs are served", func(ctx context.Context) {
		must(c.kubectl(ctx, "wait", "--for=condition=Available", "--timeout=1s", "apiservices",
			"v1beta1.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"))
	})
}
