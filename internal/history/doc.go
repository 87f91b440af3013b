// Package history checks what the service promises under faults. Clients work
// on a few licenses through several nodes while requests to etcd fail, nodes
// are killed and paused and clocks are wrong; what every client asked for and
// was told is recorded. A record of answers is right if some order of the
// operations explains it, by the rules of one license, and if every revision
// that etcd ever held does.
//
// There are only tests here. docs/explanation/correctness.md says what is checked and how to run
// it longer.
package history
