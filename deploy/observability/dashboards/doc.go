// Package dashboards builds Licet's Grafana dashboards from overview.yaml, activation.yaml, store.yaml and
// commerce.yaml, which have the titles, texts, units and PromQL of the panels, and nothing that all panels share.
// make dashboards writes them to deploy/grafana as JSON, and a test compares these files with what this package
// builds. Other tests check that some panel shows every metric, and that every panel says what it shows. The alerting
// rules are in deploy/prometheus; package promtool tests them.
//
// Files:
//
//	dashboards.go  reading the dashboards, and writing them as JSON
//	panel.go       panels: title, text, queries, units, thresholds
//	kinds.go       the kinds of panels: time series, heatmaps, single values, tables
//	layout.go      rows, and the positions of panels
//	variables.go   the variables at the top, such as the data source and the node
//	queries.go     all expressions, for tests
//	lint.go        exceptions of the linter
package dashboards
