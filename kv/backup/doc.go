// Package backup copies a store to a file (Make), creates a data directory from such a file (Restore), and
// returns free space of etcd's database to the disk (Defragment). It needs no kv.Store, only the cluster. The
// commands licet store backup, restore and defragment are in package cmd/licet.
//
// # Files
//
//	backup.go      Make: a snapshot of one member, in a file with a checksum
//	set.go         a directory of backups: their names, and which are removed
//	record.go      the time of the last backup, in the store and in the metric
//	restore.go     Restore: a data directory for an embedded etcd
//	defragment.go  Defragment: one member after the other
package backup
