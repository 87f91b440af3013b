// Package linter contains only a test: it runs Grafana's linter over the dashboards in deploy/grafana, which package
// deploy/observability/dashboards builds. The test uses the linter's packages and not its command, whose dependencies
// take half as much time again to compile.
package linter
