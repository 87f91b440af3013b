package dashboards

// Buckets of how long a member's disk takes, which bounds how long a write does.
const (
	fsyncs  = "etcd_disk_wal_fsync_duration_seconds_bucket"
	commits = "etcd_disk_backend_commit_duration_seconds_bucket"
)

func store() page {
	return page{
		file:      "licet-store.json",
		uid:       "licet-store",
		title:     "Licet / Store",
		about:     "etcd, as the nodes see it and as its members tell of themselves: leader, disk, space against the quota, Raft, traffic.",
		tags:      []string{"etcd"},
		variables: append(ofNodes(), ofMembers()...),
		rows:      []row{storeGlance(), storeSeen(), storeCluster(), storeDisk(), storeSpace(), storeRaft(), storeTraffic(), storeProcesses()},
	}
}

func storeGlance() row {
	const requests = "licet_store_request_duration_seconds_count"
	return row{"At a glance", []panel{
		{
			title: "Requests unknown",
			about: "Share of the nodes' requests to etcd of which the outcome is unknown: no answer came in time, or one that leaves it open.",
			unit:  "percentunit",
			show:  number,
			queries: []query{{
				share(sum("", rate(licet(requests, `outcome="unknown"`))), sum("", rate(licet(requests)))), "",
			}},
		},
		{
			title:    "Members up",
			about:    "Members of etcd that tell of themselves. With fewer than a majority nothing can be written.",
			unit:     "short",
			show:     number,
			of:       members,
			queries:  []query{{by("count", "", etcd(leading)), ""}},
			runbooks: []string{"LicetEtcdMemberDown", "LicetEtcdInsufficientMembers"},
		},
		{
			title:    "Without a leader",
			about:    "Members that know of no leader: cut off from the others, or in an election.",
			unit:     "short",
			show:     number,
			of:       members,
			queries:  []query{{sum("", "1 - "+etcd(leading)), ""}},
			steps:    []step{critical(1)},
			runbooks: []string{"LicetEtcdNoLeader"},
		},
		{
			title:    "Fullest database",
			about:    "The fullest member's database as a share of its quota. At 100 % etcd takes no more writes.",
			unit:     "percentunit",
			show:     number,
			of:       members,
			queries:  []query{{highest("", etcd("etcd_mvcc_db_total_size_in_bytes")+" / "+etcd("etcd_server_quota_backend_bytes")), ""}},
			steps:    []step{warning(0.6), critical(0.8)},
			runbooks: []string{"LicetEtcdDatabaseFilling"},
		},
		{
			title:    "Fsync p99",
			about:    "Time within which 99 % of the write-ahead log's writes are on the slowest member's disk. Every change waits for a majority of them.",
			unit:     "s",
			show:     number,
			of:       members,
			queries:  []query{{highest("", quantile("0.99", "instance", etcd(fsyncs))), ""}},
			steps:    []step{warning(0.01), critical(0.5)},
			runbooks: []string{"LicetEtcdSlowFsync"},
		},
		{
			title: "Alarms",
			about: "Alarms of members, such as NOSPACE: the quota was used up. A member that was told to disarm may go on counting it until it restarts; etcdctl alarm list decides.",
			unit:  "short",
			show:  number,
			of:    members,
			queries: []query{{
				orNone(by("count", "", highest("alarm_type, server_id", etcd("etcd_debugging_server_alarms"))+" > 0"), by("count", "", etcd(leading))), "",
			}},
			steps:    []step{critical(1)},
			runbooks: []string{"LicetEtcdAlarm"},
		},
	}}
}

func storeSeen() row {
	const (
		count   = "licet_store_request_duration_seconds_count"
		buckets = "licet_store_request_duration_seconds_bucket"
	)
	return row{"As the nodes see it", []panel{
		{
			title:   "Requests by operation",
			about:   "The nodes' requests to etcd in a second, by what they are for.",
			unit:    "reqps",
			queries: []query{{sum("operation", rate(licet(count))), "{{operation}}"}},
			legend:  true,
			width:   12,
		},
		{
			title:   "Duration by operation, p99",
			about:   "Time within which 99 % of an operation's requests were answered. A request is given up after two seconds.",
			unit:    "s",
			queries: []query{{quantile("0.99", "operation", licet(buckets)), "{{operation}}"}},
			legend:  true,
			width:   12,
		},
		{
			title:   "Requests by outcome",
			about:   "Requests to etcd in a second: ok; refused, so not executed; unknown, which is found out by sending the same again.",
			unit:    "reqps",
			show:    stacked,
			queries: []query{{sum("outcome", rate(licet(count))), "{{outcome}}"}},
		},
		{
			title: "Duration",
			about: "Time of one request to etcd, of all operations: half, 95 % and 99 % were quicker.",
			unit:  "s",
			queries: []query{
				{quantile("0.5", "", licet(buckets)), "p50"},
				{quantile("0.95", "", licet(buckets)), "p95"},
				{quantile("0.99", "", licet(buckets)), "p99"},
			},
		},
		{
			title:   "Requests in flight",
			about:   "Requests to etcd that are under way, by node.",
			unit:    "short",
			queries: []query{{sum("pod, instance", licet("licet_store_requests_in_flight")), node}},
		},
	}}
}

func storeCluster() row {
	return row{"Cluster", []panel{
		{
			title:    "Leader",
			about:    "Which member leads: 1 is the leader. Lines that cross are elections.",
			unit:     "short",
			of:       members,
			queries:  []query{{sum("instance", etcd("etcd_server_is_leader")), member}},
			runbooks: []string{"LicetEtcdNoLeader", "LicetEtcdLeaderChanges"},
			max:      1,
		},
		{
			title:    "Leader changes",
			about:    "Elections that each member has seen within 15 minutes. Some belong to a rolling restart; else the disk is slow or the network is.",
			unit:     "short",
			of:       members,
			queries:  []query{{sum("instance", "increase("+etcd("etcd_server_leader_changes_seen_total")+"[15m])"), member}},
			steps:    []step{warning(4)},
			runbooks: []string{"LicetEtcdLeaderChanges"},
		},
		{
			title: "Alarms by member",
			about: "Alarms, by kind and by the id of the member that has it. NOSPACE: compact, defragment, then etcdctl alarm disarm.",
			unit:  "short",
			of:    members,
			queries: []query{{
				highest("alarm_type, server_id", etcd("etcd_debugging_server_alarms")) +
					` or on () label_replace(0 * ` + highest("", etcd(leading)) + `, "alarm_type", "none", "", "")`,
				"{{alarm_type}} {{server_id}}",
			}},
			runbooks: []string{"LicetEtcdAlarm"},
		},
		{
			title:   "Health checks failed",
			about:   "Health checks that each member has answered with a failure, in a second.",
			unit:    "cps",
			of:      members,
			queries: []query{{sum("instance", rate(etcd("etcd_server_health_failures"))), member}},
		},
		{
			title:   "Round trip between members, p99",
			about:   "Time within which 99 % of the messages between members were answered. Every change waits for one. A cluster of one member has none.",
			unit:    "s",
			of:      members,
			queries: []query{{quantile("0.99", "instance", etcd("etcd_network_peer_round_trip_time_seconds_bucket")), member}},
		},
		{
			title:   "Versions",
			about:   "Versions of etcd that run, and on how many members. It must be 3.6.14 or later, or 3.7.1 or later.",
			unit:    "short",
			show:    columns,
			of:      members,
			queries: []query{{by("count", "server_version", etcd("etcd_server_version")), ""}},
		},
	}}
}
