package main

import _ "embed"

// Configurations of what runs in the cluster, as formats for fmt.Sprintf.
var (
	// Debian's Prometheus is built without Kubernetes' discovery, so it reads the file
	// that findTargets writes.
	//go:embed templates/prometheus.yml
	prometheusConfig string
	// An API that another process serves, at an address that no pod has.
	//go:embed templates/aggregated.yaml
	aggregated string
	// Not every root may lower the OOM score. All folders are this machine's alone.
	//go:embed templates/containerd.toml
	containerdConfig string
	// A bridge on each node. Pods keep their addresses on the way to other nodes, since all
	// machines have routes to them.
	//go:embed templates/pods.conflist
	podNetwork string
	// failCgroupV1 is false for machines that have no other. Nothing is evicted, since the
	// disk is not the check's own.
	//go:embed templates/kubelet.yaml
	kubeletConfig string
	//go:embed templates/kube-proxy.yaml
	proxyConfig string
	// The default storage class.
	//go:embed templates/storage-class.yaml
	storageClass string
	//go:embed templates/volume.yaml
	volume string
)
