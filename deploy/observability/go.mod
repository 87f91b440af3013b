// Dashboards, alerts and what tests them against a real Prometheus. It has a
// module of its own: nothing of what it needs belongs to the service. From the
// repository's root:
//
//	make dashboards
module licet/deploy/observability

go 1.26.8

require github.com/grafana/grafana-foundation-sdk/go v0.0.12
