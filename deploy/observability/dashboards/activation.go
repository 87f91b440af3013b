package dashboards

// accepted are the outcomes of an activation that are no refusal.
const accepted = `outcome=~"bound|again"`

func activation() page {
	const (
		activations = "licet_activations_total"
		swaps       = "licet_swaps_total"
		folds       = "licet_fold_commands"
	)
	all := sum("", rate(licet(activations)))
	return page{
		file:  "licet-activation.json",
		uid:   "licet-activation",
		title: "Licet / Activation engine",
		about: "How commands are run: mailboxes, folds, swaps, batches, placement, admission and what is " +
			"remembered. docs/explanation/architecture.md has the way of an activation.",
		tags:      []string{"engine"},
		variables: ofNodes(),
		rows: []row{
			{"At a glance", []panel{
				{title: "Activations", unit: "reqps", show: number,
					about:   "Activations answered in a second, refused ones included.",
					queries: []query{{all, ""}}},
				{title: "Refused", unit: "percentunit", show: number,
					about: "Share of activations that bound nothing: the license is full, revoked, unknown and so " +
						"on, or the service could not.",
					queries: []query{{"1 - " + sum("", rate(licet(activations, accepted))) + " / (" + all + " > 0)",
						""}}},
				{title: "Commands in a fold", unit: "short", show: number,
					about: "Commands that one transaction carries, on average. 1 at rest; more if many clients ask for " +
						"the same license, which is what folds are for.",
					queries: []query{{mean("", licet(folds+"_sum"), licet(folds+"_count")), ""}}},
				{title: "Swaps lost", unit: "percentunit", show: number,
					about: "Share of compare-and-swaps that another writer was ahead of. With --internal-listen " +
						"few are.",
					queries: []query{{share(sum("", rate(licet(swaps, `outcome="lost"`))), sum("", rate(licet(swaps)))),
						""}}},
				{title: "Room used", unit: "percentunit", show: number,
					about: "What is under way as a share of what may be, on the fullest node. At 100 % it sheds; " +
						"what one account asks for, at 50 %.",
					queries: []query{{
						highest("", licet("licet_commands_under_way")+" / "+licet("licet_commands_limit")), "",
					}},
					runbooks: []string{"LicetShedding"}},
				{title: "API keys from memory", unit: "percentunit", show: number,
					about: "Share of lookups of API keys that needed no request to the store.",
					queries: []query{{
						share(sum("", rate(licet("licet_api_key_lookups_total", `result=~"hit|unknown"`))),
							sum("", rate(licet("licet_api_key_lookups_total")))), "",
					}}},
			}},
			{"Activations", []panel{
				{title: "Activations by outcome", unit: "reqps", show: stacked, legend: true, width: 12,
					about: "Activations answered in a second: bound, again (the device was bound already) or the " +
						"reason of the refusal.",
					queries: []query{{sum("outcome", rate(licet(activations))), "{{outcome}}"}}},
				{title: "Duration of activations", unit: "s", traces: true, width: 12,
					about: "Time to answer an activation. The objective is 99 % within 100 ms. Points are traces, " +
						"where tracing is on.",
					queries: []query{
						{quantile("0.5", "", licet(requestBuckets, activating)), "p50"},
						{quantile("0.95", "", licet(requestBuckets, activating)), "p95"},
						{quantile("0.99", "", licet(requestBuckets, activating)), "p99"},
					},
					steps: []step{warning(0.1)}, runbooks: []string{"LicetLatencyBudgetBurn"}},
				{title: "Leases in use", unit: "short", legend: true, width: 24,
					about: "Leases that devices of floating licenses have, of the products with the most. Nodes count " +
						"about once a minute.",
					queries: []query{{"topk(20, " + sum("account, mode, product", licet("licet_leases_in_use")) + ")",
						"{{account}} {{mode}} {{product}}"}}},
			}},
			{"Mailboxes and folds", []panel{
				{title: "Mailboxes", unit: "short",
					about: "Records that have commands waiting or running, and how many commands wait in their " +
						"mailboxes.",
					queries: []query{
						{sum("", licet("licet_mailboxes")), "mailboxes"},
						{sum("", licet("licet_mailbox_commands_waiting")), "commands waiting"},
					}},
				{title: "Folds", unit: "ops",
					about: "Folds made in a second, and the commands in them. The gap between both is what folding " +
						"saves.",
					queries: []query{
						{sum("", rate(licet(folds+"_count"))), "folds"},
						{sum("", rate(licet(folds+"_sum"))), "commands"},
					}},
				{title: "Size of folds", unit: "short", show: heat,
					about:   "How many folds had how many commands.",
					queries: []query{{sum("le", rate(licet(folds+"_bucket"))), "{{le}}"}}},
			}},
			{"Swaps and batches", []panel{
				{title: "Swaps by outcome", unit: "ops", show: stacked,
					about: "Compare-and-swaps in a second. A lost one is folded again on what the rival has " +
						"written; an unknown one is sent again until it is known.",
					queries: []query{{sum("outcome", rate(licet(swaps))), "{{outcome}}"}}},
				{title: "Sent again", unit: "ops",
					about: "Swaps that were sent again since an earlier attempt's outcome was in doubt, and batches " +
						"that went again because one of their changes was lost.",
					queries: []query{
						{sum("", rate(licet("licet_swaps_reissued_total"))), "swaps reissued"},
						{sum("", rate(licet("licet_store_batches_lost_total"))), "batches lost"},
					}},
				{title: "Size of batches", unit: "short",
					about: "How many callers' changes or reads travel in one request to etcd. Batches grow by " +
						"themselves while earlier ones are in flight.",
					queries: []query{
						{mean("kind", licet("licet_store_batch_parts_sum"), licet("licet_store_batch_parts_count")),
							"{{kind}} mean"},
						{quantile("0.99", "kind", licet("licet_store_batch_parts_bucket")), "{{kind}} p99"},
					}},
			}},
			{"Placement", []panel{
				{title: "Hops by outcome", unit: "ops", show: stacked,
					about: "Batches of commands sent in a second to the node that writes their license. not_taken " +
						"all the time: nodes can't reach each other, look at --internal-listen and --internal-address.",
					queries: []query{{sum("outcome", rate(licet("licet_hops_total"))), "{{outcome}}"}}},
				{title: "Commands that hop", unit: "ops",
					about: "Commands sent to other nodes, and run for others, in a second and by node. One node that " +
						"runs most is the writer of a busy license.",
					queries: []query{
						{sum("pod, instance", rate(licet("licet_hop_commands_total"))), node + " sent"},
						{sum("pod, instance", rate(licet("licet_hop_commands_run_total"))), node + " run for others"},
					}},
				{title: "Commands in a hop", unit: "short",
					about: "Commands that one message to another node carries, on average.",
					queries: []query{{
						sum("", rate(licet("licet_hop_commands_total"))) + " / (" + sum("",
							rate(licet("licet_hops_total"))) + " > 0)", "commands",
					}}},
			}},
			{"Admission", []panel{
				{title: "Under way and limit", unit: "short",
					about: "Commands and reads that wait or run, by node, and how many may. The limit follows from " +
						"how many a second are served.",
					queries: []query{
						{sum("pod, instance", licet("licet_commands_under_way")), node},
						{sum("pod, instance", licet("licet_commands_limit")), node + " limit"},
					},
					runbooks: []string{"LicetShedding"}},
				{title: "Shed by reason", unit: "ops", show: stacked,
					about: "Commands and reads refused unexecuted in a second. limit: the node is full; share: " +
						"one license has half of it; mailbox: that is full; deadline: would have passed; background: " +
						"postponed work, for which no caller waits; lists, waits, pings: the highest number is under " +
						"way; connection: the listener was full and closed the connection.",
					queries:  []query{{sum("reason", rate(licet("licet_commands_shed_total"))), "{{reason}}"}},
					runbooks: []string{"LicetShedding"}},
				{title: "Shed of requests", unit: "percentunit",
					about: "Requests that were refused because of load, as a share of all requests. Postponed work " +
						"(background) does not count.",
					queries: []query{{
						sum("", rate(licet("licet_commands_shed_total", `reason!="background"`))) + " / (" + sum("",
							rate(licet("licet_http_responses_total", noProbe))) + " > 0)", "shed",
					}},
					steps: []step{warning(0.01)}, runbooks: []string{"LicetShedding"}},
			}},
			{"What is remembered", []panel{
				{title: "Records in memory", unit: "short", width: 6,
					about:   "Licenses that nodes remember, by node. --remember-licenses bounds it.",
					queries: []query{{sum("pod, instance", licet("licet_records_resident")), node}}},
				{title: "Lookups of records", unit: "ops", show: stacked, width: 6,
					about: "Lookups of what is remembered of a record, in a second. A hit saves a read from the " +
						"store; no answer rests on it alone.",
					queries: []query{{sum("result", rate(licet("licet_record_lookups_total"))), "{{result}}"}}},
				{title: "Lookups of API keys", unit: "ops", show: stacked, width: 6,
					about: "Lookups of API keys in a second: from memory (hit, unknown) or from the store (miss; " +
						"untrusted, since no scan has succeeded lately).",
					queries: []query{{sum("result", rate(licet("licet_api_key_lookups_total"))), "{{result}}"}}},
				{title: "Age of API keys", unit: "s", width: 6,
					about: "Time since the last scan for changed API keys that succeeded began, by node. From 2 " +
						"seconds on keys are read from the store.",
					queries: []query{{since("pod, instance", licet("licet_api_key_last_scan_timestamp_seconds")),
						node}},
					steps: []step{warning(30)}, runbooks: []string{"LicetAPIKeyScanStale"}},
			}},
		},
	}
}
