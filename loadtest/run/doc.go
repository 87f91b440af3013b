// Run puts a load on Licet and proves that nothing was lost in it. It starts an etcd and
// nodes, or takes a service that runs already, grants licenses, has k6 run one of the
// scenarios, and does to the service what the scenario says. Then it reads everything
// back, and compares what was acknowledged with what is stored, one device and one order
// at a time. See the README one folder up.
//
// Files:
//   - main.go, config.go, scenario.go: the program, its flags, and scenarios.json
//   - service.go: the service under load, and its first licenses
//   - k6.go: running a script
//   - events.go, deeds.go: what happens to the service during the load
//   - journal.go: what the load has acknowledged
//   - stored.go: what is stored
//   - proof.go, results.go: the comparison, and the reports
package main
