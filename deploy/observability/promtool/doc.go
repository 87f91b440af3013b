// Package promtool contains only tests: they run promtool over the alerting and recording rules, the example
// configuration and the tests of the rules, and compare the alerts with the runbooks in docs/runbooks.
package promtool
