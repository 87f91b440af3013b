// Package users gives an etcd cluster two users, and turns etcd's authentication on (Secure). The command licet store
// users is in package cmd/licet.
//
// etcd takes the user of a request from the CommonName of the client certificate. The user [Service] reads and writes
// keys, and has no other right. The user [Maintenance] has etcd's role root, which etcd demands for snapshots,
// defragmentation, compaction, a transfer of the leadership, and changes of members, users and roles
// (server/etcdserver/api/v3rpc, AuthAdmin). etcd has no smaller role for a snapshot.
//
// # Files
//
//	users.go   Secure: users, roles and their order
//	enable.go  turning authentication on, and off again if a member ignores certificates
package users
