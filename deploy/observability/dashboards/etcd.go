package dashboards

// What the members of etcd tell of themselves, beyond that they are there.

func storeDisk() row {
	return row{"Disk", []panel{
		{title: "Fsync of the log, p99", unit: "s", of: members,
			about: "Time within which 99 % of the write-ahead log's writes are on the disk, by member. Above 10 ms " +
				"the disk is too slow for etcd.",
			queries: []query{{quantile("0.99", "instance", etcd(fsyncs)), member}},
			steps:   []step{warning(0.01), critical(0.5)}, runbooks: []string{"LicetEtcdSlowFsync"}},
		{title: "Commit of the database, p99", unit: "s", of: members,
			about:   "Time within which 99 % of the database's commits are on the disk, by member.",
			queries: []query{{quantile("0.99", "instance", etcd(commits)), member}},
			steps:   []step{warning(0.025)}, runbooks: []string{"LicetEtcdSlowCommit"}},
		{title: "Log written", unit: "Bps", of: members,
			about:   "Bytes that each member writes to its log in a second.",
			queries: []query{{sum("instance", rate(etcd("etcd_disk_wal_write_bytes_total"))), member}}},
	}}
}

func storeSpace() row {
	return row{"Space", []panel{
		{title: "Database", unit: "bytes", of: members,
			about: "Size of each member's database, and what of it is in use. Where in use is far below the size, " +
				"defragment, one member at a time and the leader last.",
			queries: []query{
				{sum("instance", etcd("etcd_mvcc_db_total_size_in_bytes")), member + " size"},
				{sum("instance", etcd("etcd_mvcc_db_total_size_in_use_in_bytes")), member + " in use"},
			},
			runbooks: []string{"LicetEtcdDatabaseFilling"}},
		{title: "Database of quota", unit: "percentunit", of: members, max: 1,
			about: "Size of each member's database, and what of it is in use, as a share of the quota. It is the " +
				"size that the quota bounds.",
			queries: []query{
				{sum("instance", etcd("etcd_mvcc_db_total_size_in_bytes")) + " / " +
					sum("instance", etcd("etcd_server_quota_backend_bytes")), member + " size"},
				{sum("instance", etcd("etcd_mvcc_db_total_size_in_use_in_bytes")) + " / " +
					sum("instance", etcd("etcd_server_quota_backend_bytes")), member + " in use"},
			},
			steps: []step{warning(0.6), critical(0.8)}, runbooks: []string{"LicetEtcdDatabaseFilling"}},
		{title: "Keys", unit: "short", of: members,
			about: "Keys that each member holds, with deleted ones until they are compacted. " +
				"docs/explanation/performance.md has what a key costs.",
			queries: []query{{sum("instance", etcd("etcd_debugging_mvcc_keys_total")), member}}},
		{title: "Revisions kept", unit: "short", of: members,
			about: "Revisions since the last compaction: history that takes space. A saw that goes on rising: " +
				"compaction does not run.",
			queries: []query{{
				sum("instance", etcd("etcd_debugging_mvcc_current_revision")) + " - " + sum("instance",
					etcd("etcd_debugging_mvcc_compact_revision")), member,
			}}},
		{title: "Keys compacted", unit: "cps", of: members,
			about:   "Old revisions that compaction removes in a second. It walks the whole store.",
			queries: []query{{sum("instance", rate(etcd("etcd_debugging_mvcc_db_compaction_keys_total"))), member}}},
		{title: "Put and deleted", unit: "ops", of: members,
			about: "Puts and deletes that are applied in a second, by the busiest member; all apply the same.",
			queries: []query{{highest("", rate(etcd("etcd_mvcc_put_total"))), "puts"},
				{highest("", rate(etcd("etcd_mvcc_delete_total"))), "deletes"}}},
	}}
}

func storeRaft() row {
	return row{"Raft", []panel{
		{title: "Proposals", unit: "ops", of: members,
			about: "Changes that the cluster commits in a second, and changes that a member applies.",
			queries: []query{
				{highest("", rate(etcd("etcd_server_proposals_committed_total"))), "committed"},
				{by("min", "", rate(etcd("etcd_server_proposals_applied_total"))), "applied by the slowest"},
			}},
		{title: "Proposals pending", unit: "short", of: members,
			about: "Changes that wait to be agreed on, by member. Many: the disk or the network is slow, or too " +
				"much is asked.",
			queries: []query{{sum("instance", etcd("etcd_server_proposals_pending")), member}}},
		{title: "Proposals failed", unit: "short", of: members,
			about:   "Changes that were given up within 15 minutes, on all members: elections, or no majority.",
			queries: []query{{sum("", "increase("+etcd("etcd_server_proposals_failed_total")+"[15m])"), "failed"}},
			steps:   []step{warning(5)}, runbooks: []string{"LicetEtcdProposalsFailing"}},
		{title: "Slow and failed", unit: "cps", of: members,
			about: "Applies and reads that took a member too long, reads that failed, and heartbeats of the leader " +
				"that went out late, in a second. All of it is 0 on a good disk.",
			queries: []query{
				{sum("", rate(etcd("etcd_server_slow_apply_total"))), "slow applies"},
				{sum("", rate(etcd("etcd_server_slow_read_indexes_total"))), "slow reads"},
				{sum("", rate(etcd("etcd_server_read_indexes_failed_total"))), "failed reads"},
				{sum("", rate(etcd("etcd_server_heartbeat_send_failures_total"))), "late heartbeats"},
			}},
		{title: "Apply, p99", unit: "s", of: members,
			about: "Time within which 99 % of what was agreed on is applied, by kind of request, on the slowest " +
				"member.",
			queries: []query{{highest("op", quantile("0.99", "op, instance",
				etcd("etcd_server_apply_duration_seconds_bucket",
					`op=~"Txn|Put|Range|DeleteRange|Compaction"`))), "{{op}}"}}},
		{title: "Not applied yet", unit: "short", of: members,
			about: "Changes that are agreed on and not applied yet, by member. Above 5,000 etcd refuses requests.",
			queries: []query{{sum("instance", etcd("etcd_server_proposals_committed_total")) + " - " +
				sum("instance", etcd("etcd_server_proposals_applied_total")), member}}},
	}}
}

func storeTraffic() row {
	return row{"Clients of etcd", []panel{
		{title: "Requests by method", unit: "reqps", of: members, show: stacked, width: 12,
			about: "Requests for keys that members answer in a second. The nodes' changes are Txn.",
			queries: []query{{sum("grpc_method",
				rate(etcd("grpc_server_handled_total", `grpc_service="etcdserverpb.KV"`))), "{{grpc_method}}"}}},
		{title: "Requests failed", unit: "reqps", of: members, width: 12,
			about: "Requests that members answer with a failure of their own, in a second, by gRPC's code.",
			queries: []query{{
				sum("grpc_code", rate(etcd("grpc_server_handled_total", `grpc_service=~"etcdserverpb.*"`,
					`grpc_code=~"Unavailable|DeadlineExceeded|ResourceExhausted|Internal|Unknown"`))), "{{grpc_code}}",
			}}},
		{title: "Bytes from and to clients", unit: "Bps", of: members,
			about: "Bytes that members take from clients and send them, in a second.",
			queries: []query{
				{sum("", rate(etcd("etcd_network_client_grpc_received_bytes_total"))), "received"},
				{sum("", rate(etcd("etcd_network_client_grpc_sent_bytes_total"))), "sent"},
			}},
		{title: "Watchers", unit: "short", of: members,
			about: "Watchers of clients, and those of them that lag behind.",
			queries: []query{
				{sum("", etcd("etcd_debugging_mvcc_watcher_total")), "watchers"},
				{sum("", etcd("etcd_debugging_mvcc_slow_watcher_total")), "slow"},
			}},
		{title: "Bytes between members", unit: "Bps", of: members,
			about:   "Bytes that members send each other in a second.",
			queries: []query{{sum("instance", rate(etcd("etcd_network_peer_sent_bytes_total"))), member}}},
	}}
}

func storeProcesses() row {
	return row{"Processes of etcd", []panel{
		{title: "Processor time of etcd", unit: "short", of: members,
			about:   "Cores that each member uses.",
			queries: []query{{sum("instance", ofMember(rate(etcd("process_cpu_seconds_total")))), member}}},
		{title: "Memory of etcd", unit: "bytes", of: members,
			about: "Memory that each member has resident: about half a kilobyte a key, and its database as far as " +
				"it is read. docs/guides/sizing.md reckons it.",
			queries: []query{{sum("instance", ofMember(etcd("process_resident_memory_bytes"))), member}}},
		{title: "Open files of etcd", unit: "percentunit", of: members,
			about: "Share of the file descriptors that each member may have which are open.",
			queries: []query{{sum("instance", ofMember(etcd("process_open_fds"))) + " / " +
				sum("instance", ofMember(etcd("process_max_fds"))), member}}},
	}}
}
