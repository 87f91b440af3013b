package check

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// No network plugin is at hand that enforces policies, so what they say is worked out
// here, as the API's documentation has it.

// peer is one end of a connection: a pod, or an address outside of the cluster.
type peer struct {
	namespace string // empty: outside
	labels    map[string]string
	ports     []corev1.ContainerPort
	address   netip.Addr // of one outside
}

// allowed reports whether the policies of a namespace let a connection through: out of the
// one end, and into the other.
func allowed(policies []*networkingv1.NetworkPolicy, from, to peer, port int32, protocol corev1.Protocol) bool {
	return leaves(policies, from, to, port, protocol) && enters(policies, from, to, port, protocol)
}

// leaves asks the policies of the sender.
func leaves(policies []*networkingv1.NetworkPolicy, from, to peer, port int32, protocol corev1.Protocol) bool {
	isolated := false
	for _, p := range policies {
		if !selects(p, from) || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			continue
		}
		isolated = true
		for _, rule := range p.Spec.Egress {
			if matchesPort(rule.Ports, to, port, protocol) && matchesPeer(rule.To, p.Namespace, to) {
				return true
			}
		}
	}
	return !isolated
}

// enters reports whether the policies of the receiver allow the connection.
func enters(policies []*networkingv1.NetworkPolicy, from, to peer, port int32, protocol corev1.Protocol) bool {
	isolated := false
	for _, p := range policies {
		if !selects(p, to) || !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			continue
		}
		isolated = true
		for _, rule := range p.Spec.Ingress {
			if matchesPort(rule.Ports, to, port, protocol) && matchesPeer(rule.From, p.Namespace, from) {
				return true
			}
		}
	}
	return !isolated
}

// selects reports whether a policy is about a pod.
func selects(p *networkingv1.NetworkPolicy, pod peer) bool {
	return pod.namespace != "" && pod.namespace == p.Namespace && matches(&p.Spec.PodSelector, pod.labels)
}

func matches(selector *metav1.LabelSelector, have map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(have))
}

// matchesPort looks for the port among a rule's. One with a name is the receiver's.
func matchesPort(ports []networkingv1.NetworkPolicyPort, to peer, port int32, protocol corev1.Protocol) bool {
	if len(ports) == 0 {
		return true
	}
	return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		if p.Protocol != nil && *p.Protocol != protocol || p.Protocol == nil && protocol != corev1.ProtocolTCP {
			return false
		}
		if p.Port == nil {
			return true
		}
		if p.Port.Type == intstr.Int {
			return p.Port.IntVal == port
		}
		return slices.ContainsFunc(to.ports, func(c corev1.ContainerPort) bool {
			return c.Name == p.Port.StrVal && c.ContainerPort == port
		})
	})
}

// matchesPeer looks for one end among a rule's.
func matchesPeer(list []networkingv1.NetworkPolicyPeer, namespace string, end peer) bool {
	if len(list) == 0 {
		return true
	}
	return slices.ContainsFunc(list, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return end.namespace == "" && within(p.IPBlock, end.address)
		}
		if end.namespace == "" {
			return false
		}
		if p.NamespaceSelector == nil && end.namespace != namespace {
			return false
		}
		// Each namespace has its name as a label.
		if p.NamespaceSelector != nil &&
			!matches(p.NamespaceSelector, map[string]string{corev1.LabelMetadataName: end.namespace}) {
			return false
		}
		return p.PodSelector == nil || matches(p.PodSelector, end.labels)
	})
}

func within(block *networkingv1.IPBlock, address netip.Addr) bool {
	contains := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		return err == nil && prefix.Contains(address)
	}
	return contains(block.CIDR) && !slices.ContainsFunc(block.Except, contains)
}
