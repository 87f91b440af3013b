// Package dashboards builds Licet's Grafana dashboards in Go, so that selectors, units and
// links are written once. deploy/grafana has them as JSON: make dashboards writes the
// files, and a test compares them with what this package builds.
//
// Files:
//   - dashboards.go: all dashboards, as JSON
//   - overview.go, activation.go, store.go, etcd.go, commerce.go: what each dashboard shows
//   - panel.go, kinds.go, layout.go: panels, their kinds, and their places
//   - promql.go: expressions
//   - variables.go: what can be selected at the top
//   - queries.go: all expressions, for tests
//   - lint.go: exceptions of the linter
package dashboards
