// Package dashboards builds Licet's Grafana dashboards in Go, so that selectors, units and links are written once.
// make dashboards writes them to deploy/grafana as JSON, and a test compares these files with what this package
// builds. Other tests check that some panel shows every metric, and that every panel says what it shows. The alerting
// rules are in deploy/prometheus; package promtool tests them.
//
// Files:
//
//	dashboards.go  all dashboards, as JSON
//	overview.go    the dashboard Overview
//	activation.go  the dashboard Activation
//	store.go       the dashboard Store
//	etcd.go        the dashboard etcd
//	commerce.go    the dashboard Commerce: orders, payments, refunds, events, webhooks
//	panel.go       panels: title, text, queries, units, thresholds
//	kinds.go       the kinds of panels: time series, heatmaps, single values, tables
//	layout.go      rows, and the positions of panels
//	promql.go      PromQL expressions
//	variables.go   the variables at the top, such as the data source and the node
//	queries.go     all expressions, for tests
//	lint.go        exceptions of the linter
package dashboards
