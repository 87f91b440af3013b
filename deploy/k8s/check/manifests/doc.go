// Package manifests renders a folder of deploy/k8s with Kustomize, and decodes the result strictly, as Kubernetes' own
// types: an unknown member is an error.
//
// The map of the package:
//
//	manifests.go  rendering and decoding
package manifests
