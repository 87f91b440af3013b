// Package check contains no code, only tests of the files in deploy/k8s, deploy/helm and deploy/compose.
//
// Most tests need no cluster: they render overlays with package manifests and compare the objects with each other, with
// the help texts of the programs, and with the metrics that nodes serve. They check references between objects, labels,
// network policies, security contexts, disruption budgets, the members of etcd, the settings of backups and the
// composed services. They compare the chart with the overlays.
//
// Some tests apply everything to a real API server of Kubernetes (package cluster), and check that the server refuses
// manifests that the test has damaged. They need programs that deploy/k8s/tools/build makes. Package deploy/k8s/e2e
// runs the manifests on a complete cluster.
//
// Packages below:
//
//	manifests  renders and decodes a folder or a chart
//	cluster    an API server with its etcd
package check
