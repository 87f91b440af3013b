package dashboards

// Buckets of how long a member's disk takes, which bounds how long a write does.
const (
	fsyncs  = "etcd_disk_wal_fsync_duration_seconds_bucket"
	commits = "etcd_disk_backend_commit_duration_seconds_bucket"
)

func store() page {
	return page{
		file:  "licet-store.json",
		uid:   "licet-store",
		title: "Licet / Store",
		about: "etcd, as the nodes see it and as its members tell of themselves: leader, disk, space against the " +
			"quota, Raft, traffic.",
		tags:      []string{"etcd"},
		variables: append(ofNodes(), ofMembers()...),
		rows: []row{storeGlance(), storeSeen(), storeCluster(), storeDisk(), storeSpace(), storeRaft(),
			storeTraffic(), storeProcesses()},
	}
}

func storeGlance() row {
	const requests = "licet_store_request_duration_seconds_count"
	return row{"At a glance", []panel{
		{title: "Requests unknown", unit: "percentunit", show: number,
			about: "Share of the nodes' requests to etcd with an unknown outcome: no answer came in time, or an " +
				"answer that leaves the outcome open.",
			queries: []query{{
				share(sum("", rate(licet(requests, `outcome="unknown"`))), sum("", rate(licet(requests)))), "",
			}}},
		{title: "Members up", unit: "short", show: number, of: members,
			about:    "Members of etcd that tell of themselves. With fewer than a majority nothing can be written.",
			queries:  []query{{by("count", "", etcd(leading)), ""}},
			runbooks: []string{"LicetEtcdMemberDown", "LicetEtcdInsufficientMembers"}},
		{title: "Without a leader", unit: "short", show: number, of: members,
			about:   "Members that know of no leader: cut off from the others, or in an election.",
			queries: []query{{sum("", "1 - "+etcd(leading)), ""}},
			steps:   []step{critical(1)}, runbooks: []string{"LicetEtcdNoLeader"}},
		{title: "Fullest database", unit: "percentunit", show: number, of: members,
			about: "The fullest member's database as a share of its quota. At 100 % etcd takes no more writes.",
			queries: []query{{highest("",
				etcd("etcd_mvcc_db_total_size_in_bytes")+" / "+etcd("etcd_server_quota_backend_bytes")), ""}},
			steps: []step{warning(0.6), critical(0.8)}, runbooks: []string{"LicetEtcdDatabaseFilling"}},
		{title: "Fsync p99", unit: "s", show: number, of: members,
			about: "Time within which 99 % of the write-ahead log's writes are on the slowest member's disk. Every " +
				"change waits for a majority of them.",
			queries: []query{{highest("", quantile("0.99", "instance", etcd(fsyncs))), ""}},
			steps:   []step{warning(0.01), critical(0.5)}, runbooks: []string{"LicetEtcdSlowFsync"}},
		{title: "Alarms", unit: "short", show: number, of: members,
			about: "Alarms of members, such as NOSPACE: the quota was used up. After a disarm, a member may go on " +
				"counting the alarm until it restarts; etcdctl alarm list decides.",
			queries: []query{{
				orNone(by("count", "", highest("alarm_type, server_id", etcd("etcd_debugging_server_alarms"))+" > 0"),
					by("count", "", etcd(leading))), "",
			}},
			steps: []step{critical(1)}, runbooks: []string{"LicetEtcdAlarm"}},
	}}
}

func storeSeen() row {
	const (
		count   = "licet_store_request_duration_seconds_count"
		buckets = "licet_store_request_duration_seconds_bucket"
	)
	return row{"As the nodes see it", []panel{
		{title: "Space", unit: "short", show: number,
			about: "1 while the store is in this state: reserve, while nodes refuse growth, or full, while the store " +
				"refuses all changes.",
			queries: []query{{highest("state", licet("licet_store_space")), "{{state}}"}},
			steps:   []step{critical(1)}, runbooks: []string{"LicetStoreSpace"}},
		{title: "Quota used by the fullest member", unit: "percentunit", legend: true,
			about: "Share of the quota, as the nodes see it. From 90 % in use, or a file of 97 %, nodes refuse " +
				"growth until less than 85 % is in use.",
			queries: []query{{highest("kind", licet("licet_store_quota_used_ratio")), "{{kind}}"}}},
		{title: "Growth refused", unit: "reqps", legend: true,
			about:   "Changes in a second that nodes refused for want of space in the store.",
			queries: []query{{sum("reason", rate(licet("licet_growth_refused_total"))), "{{reason}}"}}},
		{title: "Refused by storage budgets", unit: "reqps",
			about:   "Commands in a second that were refused because their account has reached its storage budget.",
			queries: []query{{sum("", rate(licet("licet_budget_refusals_total"))), "refused"}}},
		{title: "Accounts near their storage budget", unit: "short",
			about: "Accounts and modes that store four fifths of what their budget allows ordinary growth, by the " +
				"node that sees most of them.",
			queries: []query{{highest("", licet("licet_budget_warned_accounts")), "accounts"}}},
		{title: "Corrections by recounts", unit: "Bps",
			about:   "Bytes in a second by which recounts corrected what accounts store, up or down.",
			queries: []query{{sum("", rate(licet("licet_usage_corrected_bytes_total"))), "corrected"}}},
		{title: "Requests by operation", unit: "reqps", legend: true, width: 12,
			about:   "The nodes' requests to etcd in a second, by what they are for.",
			queries: []query{{sum("operation", rate(licet(count))), "{{operation}}"}}},
		{title: "Duration by operation, p99", unit: "s", legend: true, width: 12,
			about: "Time within which 99 % of an operation's requests were answered. A request is given up after " +
				"two seconds.",
			queries: []query{{quantile("0.99", "operation", licet(buckets)), "{{operation}}"}}},
		{title: "Requests by outcome", unit: "reqps", show: stacked,
			about: "Requests to etcd in a second: ok; refused, so not executed; unknown, which is found out by " +
				"sending the same again.",
			queries: []query{{sum("outcome", rate(licet(count))), "{{outcome}}"}}},
		{title: "Duration", unit: "s",
			about: "Time of one request to etcd, of all operations: half, 95 % and 99 % were quicker.",
			queries: []query{
				{quantile("0.5", "", licet(buckets)), "p50"},
				{quantile("0.95", "", licet(buckets)), "p95"},
				{quantile("0.99", "", licet(buckets)), "p99"},
			}},
		{title: "Requests in flight", unit: "short",
			about:   "Requests to etcd that are under way, by node.",
			queries: []query{{sum("pod, instance", licet("licet_store_requests_in_flight")), node}}},
	}}
}

func storeCluster() row {
	return row{"Cluster", []panel{
		{title: "Leader", unit: "short", of: members, max: 1,
			about:    "Which member leads: 1 is the leader. Lines that cross are elections.",
			queries:  []query{{sum("instance", etcd("etcd_server_is_leader")), member}},
			runbooks: []string{"LicetEtcdNoLeader", "LicetEtcdLeaderChanges"}},
		{title: "Leader changes", unit: "short", of: members,
			about: "Elections that each member has seen within 15 minutes. Some belong to a rolling restart; else " +
				"the disk is slow or the network is.",
			queries: []query{{sum("instance", "increase("+etcd("etcd_server_leader_changes_seen_total")+"[15m])"),
				member}},
			steps: []step{warning(4)}, runbooks: []string{"LicetEtcdLeaderChanges"}},
		{title: "Alarms by member", unit: "short", of: members,
			about: "Alarms, by kind and by the id of the member that has it. NOSPACE: compact, defragment, then " +
				"etcdctl alarm disarm.",
			queries: []query{{
				highest("alarm_type, server_id", etcd("etcd_debugging_server_alarms")) +
					` or on () label_replace(0 * ` + highest("", etcd(leading)) + `, "alarm_type", "none", "", "")`,
				"{{alarm_type}} {{server_id}}",
			}},
			runbooks: []string{"LicetEtcdAlarm"}},
		{title: "Health checks failed", unit: "cps", of: members,
			about:   "Health checks that each member has answered with a failure, in a second.",
			queries: []query{{sum("instance", rate(etcd("etcd_server_health_failures"))), member}}},
		{title: "Round trip between members, p99", unit: "s", of: members,
			about: "Time within which 99 % of the messages between members were answered. Every change waits for " +
				"one. A cluster of one member has none.",
			queries: []query{{quantile("0.99", "instance", etcd("etcd_network_peer_round_trip_time_seconds_bucket")),
				member}}},
		{title: "Versions", unit: "short", show: columns, of: members,
			about: "Versions of etcd that run, and on how many members. It must be 3.6.14 or later, or 3.7.1 or " +
				"later.",
			queries: []query{{by("count", "server_version", etcd("etcd_server_version")), ""}}},
	}}
}
