// Package cluster runs an API server of Kubernetes with an etcd below it, on addresses of this machine only, for as
// long as a test takes. There are no controllers and no kubelets: the server checks and stores objects, and starts
// nothing.
//
// The map of the package:
//
//	cluster.go  start and stop, by envtest of controller-runtime
//	api.go      requests to the API server
package cluster
