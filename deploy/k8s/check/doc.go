// Package check holds no code, only tests of deploy/k8s and deploy/compose.
//
// Most need nothing: they render overlays, decode them strictly, and compare them with each
// other, with the programs' own help, and with what the nodes serve. Tests that apply
// everything to a real API server of Kubernetes, and have it refuse what is broken on
// purpose, need programs that ../tools/build makes.
//
// Packages below:
//   - manifests: renders and decodes a folder
//   - cluster: an API server with its etcd
package check
