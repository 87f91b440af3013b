// Package linter holds no code, only a test that runs Grafana's linter over the
// dashboards of deploy/grafana. It uses the linter's packages and not its command,
// which takes half as much again to build, for what it can fetch and mend.
package linter
