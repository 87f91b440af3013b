// Package lab runs a service to test dashboards and rules against: an etcd of three members, two nodes of Licet under
// load, and Debian's Prometheus, which scrapes all of them every second and evaluates the rules. Its tests check that
// every expression of a dashboard or rule finds series in that Prometheus.
//
// The load gives each metric a value: activations that bind, bind again and are refused; one license that both nodes
// activate at once; orders that are paid, canceled and refunded; webhooks to receivers that answer, fail and refuse
// connections; a backup. Load tests, which prove results or measure speed, are in loadtest; the lab uses their packages
// rig and stage.
//
// Files:
//
//	lab.go         starting everything
//	prometheus.go  Prometheus as a child process; its queries and rules
//	shop.go        the load
//	receivers.go   the webhook endpoints
package lab
