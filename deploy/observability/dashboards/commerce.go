package dashboards

func commerce() page {
	return page{
		file:  "licet-commerce.json",
		uid:   "licet-commerce",
		title: "Licet / Commerce and webhooks",
		about: "Orders, payments and refunds, the events that are recorded of them, their delivery to webhook " +
			"endpoints, and the chores and backups behind it all.",
		tags:      []string{"commerce"},
		variables: ofNodes(),
		rows:      []row{commerceGlance(), orders(), events(), webhooks(), chores()},
	}
}

// perMinute turns a rate by second into a rate by minute, for rare events.
func perMinute(of string) string { return "60 * " + of }

func commerceGlance() row {
	return row{"At a glance", []panel{
		{title: "Orders paid", unit: "cpm", show: number,
			about:   "Orders that were paid, in a minute.",
			queries: []query{{perMinute(sum("", rate(licet("licet_orders_total", `state="paid"`)))), ""}}},
		{title: "Refunds due", unit: "short", show: number,
			about: "Orders whose money is to go back and has not yet, up to 1,000, as the last pass over them " +
				"found.",
			queries:  []query{{highest("", licet("licet_refunds_due")), ""}},
			runbooks: []string{"LicetRefundsStuck"}},
		{title: "Feed lag", unit: "s", show: number,
			about:   "Age of the events that are recorded and not in the feed yet: a second or two.",
			queries: []query{{highest("", licet("licet_event_feed_lag_seconds")), ""}},
			steps:   []step{warning(10)}, runbooks: []string{"LicetEventFeedLag"}},
		{title: "Delivery lag", unit: "s", show: number,
			about:   "Age of the oldest event that was read and not sent yet, without endpoints that are failing.",
			queries: []query{{highest("", licet("licet_webhook_lag_seconds")), ""}},
			steps:   []step{warning(60)}, runbooks: []string{"LicetWebhookLag"}},
		{title: "Dead letters", unit: "short", show: number,
			about:    "Messages to webhook endpoints that were given up, and are kept.",
			queries:  []query{{sum("", licet("licet_webhook_dead_letters")), ""}},
			runbooks: []string{"LicetWebhookDeadLetters"}},
		{title: "Backup age", unit: "s", show: number, empty: "no backup known",
			about:   "Time since the last backup that ended well. It is recorded in etcd by licet store backup.",
			queries: []query{{since("", licet("licet_backup_last_success_timestamp_seconds")), ""}},
			steps:   []step{warning(26 * 3600), critical(74 * 3600)}, runbooks: []string{"LicetBackupOld"}},
	}}
}

func orders() row {
	return row{"Orders and payments", []panel{
		{title: "Orders by state", unit: "cpm",
			about:   "Orders that reached a state, in a minute.",
			queries: []query{{perMinute(sum("state", rate(licet("licet_orders_total")))), "{{state}}"}}},
		{title: "Paid of created", unit: "percentunit",
			about: "Orders paid as a share of those created. Free orders are paid at once; others are created some " +
				"time before, so it may be above 100 % for a while.",
			queries: []query{{
				share(sum("", rate(licet("licet_orders_total", `state="paid"`))),
					sum("", rate(licet("licet_orders_total", `state="created"`)))), "paid",
			}}},
		{title: "Asked of the provider", unit: "cpm",
			about: "What the payment provider was asked, in a minute, and how it ended. refused: the provider " +
				"says no; failed: it does not answer, or not so that it is understood.",
			queries: []query{{perMinute(sum("operation, outcome", rate(licet("licet_payment_requests_total")))),
				"{{operation}} {{outcome}}"}},
			runbooks: []string{"LicetPaymentProviderFailing"}},
		{title: "The provider fails", unit: "percentunit",
			about: "Share of what the payment provider was asked that has failed.",
			queries: []query{{
				share(sum("operation", rate(licet("licet_payment_requests_total", `outcome="failed"`))),
					sum("operation", rate(licet("licet_payment_requests_total")))), "{{operation}}",
			}},
			steps: []step{warning(0.1)}, runbooks: []string{"LicetPaymentProviderFailing"}},
		{title: "The provider's duration, p95", unit: "s",
			about: "Time within which 95 % of what the payment provider was asked was answered.",
			queries: []query{{quantile("0.95", "operation", licet("licet_payment_request_duration_seconds_bucket")),
				"{{operation}}"}},
			runbooks: []string{"LicetPaymentProviderFailing"}},
		{title: "Refunds", unit: "short",
			about: "Steps of refunds, in a minute: the provider was about to be asked, the refund is recorded, the " +
				"provider has refused it for good, or it has failed after it was made; and how many are due.",
			queries: []query{
				{perMinute(sum("outcome", rate(licet("licet_refunds_total")))), "{{outcome}} a minute"},
				{highest("", licet("licet_refunds_due")), "due"},
			},
			runbooks: []string{"LicetRefundsStuck"}},
	}}
}

func events() row {
	return row{"Events", []panel{
		{title: "Events recorded", unit: "cps", show: stacked, legend: true, width: 12,
			about: "Events recorded in a second, by type. Those of activations and devices are, where " +
				"--record-activations is on.",
			queries: []query{{sum("type", rate(licet("licet_events_recorded_total"))), "{{type}}"}}},
		{title: "Unreadable event values", unit: "short", width: 6,
			about: "Stored values of events that each node has met and can't read: damaged, or written by a newer " +
				"version. Readers and webhook endpoints get placeholders in their place.",
			queries: []query{{sum("pod, instance", licet("licet_event_values_unreadable_total")), node}},
			steps:   []step{warning(1)}, runbooks: []string{"LicetEventValuesUnreadable"}},
		{title: "Feed lag over time", unit: "s", width: 6,
			about:   "Age of the events that are recorded and not in the feed yet. All nodes find about the same.",
			queries: []query{{highest("", licet("licet_event_feed_lag_seconds")), "lag"}},
			steps:   []step{warning(10)}, runbooks: []string{"LicetEventFeedLag"}},
	}}
}

func webhooks() row {
	const attempts = "licet_webhook_attempt_duration_seconds_bucket"
	return row{"Webhooks", []panel{
		{title: "Attempts by outcome", unit: "cps", show: stacked,
			about: "Attempts to deliver an event, in a second: delivered, failed, or gone where the receiver has " +
				"answered 410.",
			queries: []query{{sum("outcome", rate(licet("licet_webhook_attempts_total"))), "{{outcome}}"}}},
		{title: "Duration of attempts", unit: "s",
			about: "Time of one attempt. Receivers are cut off after 15 seconds.",
			queries: []query{
				{quantile("0.5", "", licet(attempts)), "p50"},
				{quantile("0.95", "", licet(attempts)), "p95"},
				{quantile("0.99", "", licet(attempts)), "p99"},
			}},
		{title: "Endpoints by state", unit: "short", show: stacked,
			about: "Endpoints that are enabled: delivering, failing (one message at a time finds out whether it " +
				"still does) or idle.",
			queries: []query{{sum("state", licet("licet_webhook_endpoints")), "{{state}}"}}},
		{title: "Given up", unit: "short", of: recording, signed: true, width: 6,
			about: "Messages to webhook endpoints that were given up within six hours, or fewer kept where it is " +
				"negative. Receivers' doing, unless many have some: then look at the way out of the cluster.",
			queries: []query{{sum("", "delta("+recorded("job:licet_webhook_dead_letters:sum")+"[6h])"), "given up"}},
			steps:   []step{warning(100)}, runbooks: []string{"LicetWebhookDeadLetters"}},
		{title: "Pending and dead", unit: "short", width: 6,
			about: "Failed messages that wait for their next attempt, and messages that were given up. The cause is " +
				"their receivers, unless all endpoints have some: then check the network out of the cluster.",
			queries: []query{
				{sum("", licet("licet_webhook_pending")), "pending"},
				{sum("", licet("licet_webhook_dead_letters")), "dead letters"},
			},
			runbooks: []string{"LicetWebhookDeadLetters"}},
		{title: "Delivery lag by node", unit: "s", width: 6,
			about: "Age of the oldest event that a node has read and not sent yet, without endpoints that are " +
				"failing. Too few nodes, a slow etcd, or an endpoint that fails now and then: while 1,000 of its " +
				"messages are to be tried again, new ones wait.",
			queries: []query{{highest("pod, instance", licet("licet_webhook_lag_seconds")), node}},
			steps:   []step{warning(60)}, runbooks: []string{"LicetWebhookLag"}},
		{title: "Checkpoints and skips", unit: "cps", width: 6,
			about: "What was stored of deliveries, in a second: ok; lost, since another node has the endpoint by " +
				"now; unknown. And times that events were no longer kept which an endpoint had not got: keep them " +
				"longer.",
			queries: []query{
				{sum("outcome", rate(licet("licet_webhook_checkpoints_total"))), "{{outcome}}"},
				{sum("", rate(licet("licet_webhook_skips_total"))), "skips"},
			},
			runbooks: []string{"LicetWebhookSkips"}},
	}}
}

func chores() row {
	return row{"Chores and backups", []panel{
		{title: "Chores by outcome", unit: "cpm", show: stacked, width: 12,
			about: "Passes of the nodes' chores, in a minute. failed: it goes on later, the log says why, and the " +
				"panel beside this which. put_off: the node was too busy.",
			queries:  []query{{perMinute(sum("outcome", rate(licet("licet_sweeps_total")))), "{{outcome}}"}},
			runbooks: []string{"LicetSweepFailing"}},
		{title: "Since a chore went well", unit: "s", legend: true, width: 12,
			about:   "Time since a pass of a chore last went well, on any node.",
			queries: []query{{since("sweep", licet("licet_sweep_last_success_timestamp_seconds")), "{{sweep}}"}},
			steps:   []step{warning(900)}, runbooks: []string{"LicetSweepFailing"}},
		{title: "Duration of chores, p95", unit: "s", legend: true, width: 12,
			about:   "Time within which 95 % of the passes of a chore were done.",
			queries: []query{{quantile("0.95", "sweep", licet("licet_sweep_duration_seconds_bucket")), "{{sweep}}"}}},
		{title: "Nodes by the state of their clock", unit: "short", legend: true, width: 12,
			about: "How many nodes' clocks agree with the clocks of most nodes. undecided: the node removes and " +
				"records nothing by time. differs: the node refuses all requests.",
			queries:  []query{{sum("state", licet("licet_clock_state")), "{{state}}"}},
			runbooks: []string{"LicetClocksUndecided"}},
		{title: "Difference of clocks", unit: "s", width: 12,
			about: "By how much the clock of another node is at least ahead of the node's clock; negative where it " +
				"is behind.",
			queries:  []query{{highest("pod, instance", licet("licet_clock_difference_seconds")), node}},
			runbooks: []string{"LicetClockDiffers"}},
		{title: "Backup age over time", unit: "s", width: 12,
			about:   "Time since the last backup that ended well. Nothing is shown where none is known.",
			queries: []query{{since("", licet("licet_backup_last_success_timestamp_seconds")), "backup"}},
			steps:   []step{warning(26 * 3600), critical(74 * 3600)}, runbooks: []string{"LicetBackupOld"}},
	}}
}
