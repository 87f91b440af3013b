// Package manifests renders a folder of deploy/k8s with Kustomize, or a chart with Helm, and decodes the result
// strictly, as Kubernetes' own types: an unknown member is an error.
//
// The map of the package:
//
//	chart.go      rendering of a Helm chart
//	manifests.go  rendering of a folder, and decoding
package manifests
