// Package backup copies a store to a file and makes a data directory of such a file. It also gives back to the
// disk what etcd has freed. It needs no store of package kv: only the cluster.
//
// # Files
//
//	backup.go      Make: a snapshot of one member, in a file with a checksum
//	set.go         a directory of backups: their names, and which are removed
//	record.go      the time of the last backup, in the store and in the metric
//	restore.go     Restore: a data directory for an embedded etcd
//	defragment.go  Defragment: one member after the other
package backup
