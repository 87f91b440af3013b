// Package stage is a service that a load test uses from outside: an etcd, nodes of licet in front of it, a balancer in
// front of the nodes, and a browser for the pay pages. The load test kills and restarts nodes, and verifies the store
// afterwards.
//
// Package loadtest/rig starts single processes; this package puts them together. The programs compare, run
// and money use it, and deploy/observability/lab. The load itself, its plan and its verdict are in these
// programs.
//
// Files:
//
//	stage.go     starting, restarting, killing and ending nodes
//	proof.go     licet store verify, backup and restore, by way of rig; reading logs
//	balancer.go  an http.RoundTripper that sends each request to a random node
//	browser.go   buyers on the pay pages
package stage
