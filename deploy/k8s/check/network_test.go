package check

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"licet/deploy/k8s/check/manifests"
)

// TestPoliciesAllowNeededTraffic: the policies allow the needed traffic and nothing else.
func TestPoliciesAllowNeededTraffic(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		policies := manifests.All[networkingv1.NetworkPolicy](set)
		namespace := set[0].Raw.GetName()
		pod := func(name string) peer {
			template := find(t, set, name).template
			return peer{namespace: namespace, labels: template.Labels, ports: template.Spec.Containers[0].Ports}
		}
		outside := func(address string) peer { return peer{address: netip.MustParseAddr(address)} }
		var (
			node         = pod("Deployment/licet")
			etcd         = pod("StatefulSet/etcd")
			backup       = pod("CronJob/licet-backup")
			defragment   = pod("CronJob/etcd-defragment")
			users        = pod("CronJob/etcd-users")
			certificates = pod("Job/etcd-certificates")
			renewal      = pod("CronJob/etcd-certificates-renewal")
			prometheus   = peer{namespace: "monitoring",
				labels: map[string]string{"app.kubernetes.io/name": "prometheus"}}
			ingress = peer{namespace: "ingress-nginx",
				labels: map[string]string{"app.kubernetes.io/name": "ingress-nginx"}}
			names    = peer{namespace: "kube-system", labels: map[string]string{"k8s-app": "kube-dns"}}
			stranger = peer{namespace: namespace, labels: map[string]string{"app.kubernetes.io/name": "stranger"}}
			foreign  = peer{namespace: "other", labels: node.labels}
			all      = map[string]peer{
				"node": node, "etcd": etcd, "backup": backup, "defragment": defragment, "users": users,
				"certificates": certificates, "renewal": renewal, "prometheus": prometheus, "ingress": ingress,
				"stranger": stranger,
				"foreign":  foreign,
			}
		)
		f := func(what string, from, to peer, port int32, want bool) {
			t.Helper()
			if got := allowed(policies, from, to, port, corev1.ProtocolTCP); got != want {
				t.Errorf("%s, port %d: allowed is %v", what, port, got)
			}
		}
		// Each pod's ports, and the pods that reach them.
		type door struct {
			to   peer
			port int32
			who  map[string]bool // nil: everybody
		}
		for what, d := range map[string]door{
			"the API":        {node, portOf(t, node, "http"), nil},
			"nodes' metrics": {node, portOf(t, node, "metrics"), map[string]bool{"prometheus": true}},
			"other nodes":    {node, portOf(t, node, "internal"), map[string]bool{"node": true}},
			"etcd": {etcd, portOf(t, etcd, "client"),
				map[string]bool{"node": true, "backup": true, "defragment": true, "users": true}},
			"members":          {etcd, portOf(t, etcd, "peer"), map[string]bool{"etcd": true}},
			"members' metrics": {etcd, portOf(t, etcd, "metrics"), map[string]bool{"prometheus": true}},
		} {
			for name, from := range all {
				want := d.who[name]
				if d.who == nil {
					// All other senders: the namespace's own pods need no API.
					want = from.namespace != namespace
				}
				f(name+" to "+what, from, d.to, d.port, want)
			}
			f("outside to "+what, outside("203.0.113.7"), d.to, d.port, d.who == nil)
		}
		for name, from := range all {
			own := from.namespace == namespace
			if !own {
				continue
			}
			for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
				if !allowed(policies, from, names, 53, protocol) {
					t.Errorf("%s can't ask for names by %s", name, protocol)
				}
			}
			f(name+" to a webhook", from, outside("203.0.113.7"), 443,
				name == "node" || name == "certificates" || name == "renewal")
			f(name+" to a webhook over IPv6", from, outside("2606:4700::1111"), 443,
				name == "node" || name == "certificates" || name == "renewal")
			f(name+" to the Internet", from, outside("203.0.113.7"), 80, false)
			f(name+" to the API server", from, outside("10.96.0.1"), 443, name == "certificates" || name == "renewal")
			f(name+" to the API server", from, outside("192.168.7.2"), 6443,
				name == "certificates" || name == "renewal")
			f(name+" to a cloud's credentials", from, outside("169.254.169.254"), 80, false)
			f(name+" to the stranger", from, stranger, 443, false)
		}
		for _, private := range []string{"10.0.0.1", "172.20.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1",
			"169.254.169.254", "fd00::1", "fe80::1", "::1", "2001:db8::1"} {
			f("node to "+private, node, outside(private), 443, false)
		}
	})
}

// portOf is the number of a named port of a pod.
func portOf(t *testing.T, pod peer, name string) int32 {
	t.Helper()
	for _, p := range pod.ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	t.Fatalf("no port is called %s", name)
	return 0
}

// TestPoliciesNamePorts: every policy names ports that some pod has, and selects at least one pod.
func TestPoliciesNamePorts(t *testing.T) {
	eachOverlay(t, func(t *testing.T, set manifests.Set) {
		for _, p := range manifests.All[networkingv1.NetworkPolicy](set) {
			found := 0
			for _, w := range workloads(set) {
				if !matches(&p.Spec.PodSelector, w.template.Labels) {
					continue
				}
				found++
				ports := w.template.Spec.Containers[0].Ports
				for _, rule := range p.Spec.Ingress {
					for _, port := range rule.Ports {
						number := port.Port.IntVal
						if port.Port.StrVal != "" {
							number = portOf(t, peer{ports: ports}, port.Port.StrVal)
						}
						if !hasPort(ports, number) {
							t.Errorf("NetworkPolicy/%s lets in at %s, which %s has not", p.Name, port.Port, w.name)
						}
					}
				}
			}
			if found == 0 {
				t.Errorf("NetworkPolicy/%s is about no pod", p.Name)
			}
		}
	})
}

func hasPort(ports []corev1.ContainerPort, number int32) bool {
	for _, p := range ports {
		if p.ContainerPort == number {
			return true
		}
	}
	return false
}
