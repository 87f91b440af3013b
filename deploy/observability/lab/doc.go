// Package lab runs what dashboards and rules are tested against: an etcd of three members,
// two nodes of Licet under load, and Debian's Prometheus, which scrapes all of them every
// second and evaluates the rules. That Prometheus has the series of a service's own.
//
// The load gives each metric a value: activations that bind, bind again and are refused;
// one license that both nodes activate at once; orders that are paid, canceled and
// refunded; webhooks to receivers that answer, fail and are not there; a backup.
//
// Files:
//   - lab.go: starting everything
//   - prometheus.go: a Prometheus server, its queries and rules
//   - shop.go, receivers.go: the load, and the webhook endpoints
//   - parts.go: the parts of an expression that must have series
package lab
