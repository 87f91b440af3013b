// The end-to-end check of deploy/k8s: a Kubernetes of its own on one machine, in which the
// production overlay runs and everything on docs/guides/kubernetes.md is done. It has a module of
// its own, and needs nothing but Go's library. From the repository's root, as root:
//
//	make k8s-e2e
module licet/deploy/k8s/e2e

go 1.26.8
