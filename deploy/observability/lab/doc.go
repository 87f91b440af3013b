// Package lab runs the real thing for dashboards and rules to look at: an etcd of
// three members, two nodes of Licet with what they can come across, and a
// Prometheus of Debian's that scrapes all of them every second and evaluates the
// rules. So whoever asks that Prometheus sees what a service's own would show.
//
// The load is whatever gives each metric something to tell: activations that bind,
// that bind again and that are refused; one license that is asked for on both nodes
// at once; orders that are paid, canceled and refunded; webhooks to receivers that
// answer, that fail and that are not there; a backup.
package lab
