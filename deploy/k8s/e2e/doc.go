// Command e2e checks deploy/k8s end to end. It starts a complete Kubernetes on this machine: a control plane, and three
// nodes, each a kubelet with a containerd in Linux namespaces of its own. It applies the production overlay, and runs
// every command on docs/guides/kubernetes.md as the page shows it: updates under load, drains, killed nodes, lost
// members of etcd, backup and restore. Afterwards it checks that the machine is as it was before.
//
// Only the machines are simulated: the kubelets run containers. e2e installs nothing. Tests that need only an API
// server, or none, are in deploy/k8s/check.
//
//	cd deploy/k8s/e2e && go build -o ../../../bin/k8s-e2e . && sudo ../../../bin/k8s-e2e
//
// The program:
//
//	main.go          the program and its settings
//	failure.go       errors that end a step
//	report.go        progress, and the result of each step
//	page.go          the commands of the guide's page, by the names of their code blocks
//	steps.go         the steps of the walk through the page
//	steps_faults.go  updates, drains, killed nodes, lost members
//	steps_backup.go  backup and restore
//	load.go          k6's load meanwhile
//	targets.go       what Prometheus scrapes, for the autoscaler's metric
//
// The machines and their cluster:
//
//	machine.go       what a run could change on this machine, before and after
//	namespace.go     a machine made of Linux namespaces, and kernel settings in it
//	network.go       bridges and routes between the machines
//	process.go       processes in the background, and their logs
//	programs.go      building and caching programs of Kubernetes
//	packages.go      downloading and unpacking Debian packages
//	pki.go           certificates of the cluster
//	control.go       API server, scheduler, controllers
//	node.go          containerd, kubelet and kube-proxy of a node
//	volumes.go       persistent volumes
//	cluster.go       the whole cluster, and its files
//	templates.go     configurations of these processes, rendered from templates
package main
