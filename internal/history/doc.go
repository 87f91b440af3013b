// Package history checks the guarantees of the service under faults. Clients work on a few licenses
// through several nodes while requests to etcd fail, nodes are killed and paused, and clocks are
// wrong. The test records each request and its answer. The recorded history is correct if the rules of
// a license explain all answers in some order of the operations, and explain every revision that etcd
// has held.
//
// The package holds only tests. docs/explanation/correctness.md says what they check and how to run
// them longer.
package history
