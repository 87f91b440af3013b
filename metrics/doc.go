// Package metrics contains every Prometheus instrument of the service. [New] builds the instruments on a
// registry that the caller passes in; no instrument is global. docs/reference/metrics.md documents the
// metrics for operators.
//
// Labels have few values. Where the values are known beforehand, the series exist from the start, so that
// a rate includes the first event. No label contains a key, a device, an order or an
// address. Only licet_leases_in_use has an account and a product. See docs/decisions/0023-metrics.md.
//
// Packages below: metrics/tracing exports traces, metrics/guard starts goroutines and counts their panics. The
// dashboards and the alerts on these metrics are in deploy/observability and deploy/prometheus.
//
// Files:
//
//   - metrics.go: all instruments of a process, their registration, and the handler of scrapes
//   - http.go: HTTP requests and responses, rate limits, activations
//   - engine.go: mailboxes, folds, hops, admission, panics
//   - store.go: etcd requests, swaps, caches
//   - commerce.go: orders, payments, refunds
//   - events.go: events and their delivery to webhook endpoints
//   - chores.go: readiness, backups, sweeps
//   - tracing.go: the export of traces
//   - requests.go: observes the duration and the response of HTTP requests
//   - storetimes.go: observes the duration of etcd requests
//   - handlecache.go: caches the series of a set of labels
//   - funcgauge.go: a gauge whose value functions return
//   - seriesgauge.go: a gauge whose series are replaced all at once
//   - distinct.go: a counter that counts each name once
package metrics
