// Command e2e checks deploy/k8s end to end. It starts a Kubernetes of its own on this
// machine: a control plane, and three nodes, each a kubelet with a containerd in namespaces
// of its own. The production overlay runs in it, and e2e runs every command on
// docs/guides/kubernetes.md as it is written there, and checks the result: nodes are
// updated under load, drained and killed, and the store loses members, and then everything,
// and is restored.
//
// Nothing is mocked but the machines: the kubelets run containers. Nothing is installed.
// Afterwards e2e checks that the machine is as it was before.
//
//	cd deploy/k8s/e2e && go build -o ../../../bin/k8s-e2e . && sudo ../../../bin/k8s-e2e
//
// Files:
//   - main.go, report.go: the program and its report
//   - machine.go: what a run could change of this machine, before and after
//   - namespace.go, network.go, process.go: machines made of namespaces
//   - programs.go, packages.go: getting the programs
//   - pki.go, control.go, node.go, volumes.go, cluster.go: a cluster on the machines
//   - templates.go: the configurations in templates
//   - targets.go: what Prometheus scrapes
//   - page.go: the commands of the page
//   - steps.go, steps_faults.go, steps_backup.go: the walk through the page
//   - load.go: k6's load meanwhile
package main
