package dashboards

// Selectors that several panels of requests share. Probes, scrapes and profiles are for operators and do not count as
// requests.
const (
	noProbe    = `route!~"/livez|/readyz|/metrics|/debug/pprof/.*"`
	failed     = `code=~"5.."`
	activating = `route="/v1/licenses/activate"`
)

const (
	requestCount   = "licet_http_request_duration_seconds_count"
	requestBuckets = "licet_http_request_duration_seconds_bucket"
)

func overview() page {
	served := sum("", rate(licet(requestCount, noProbe)))
	return page{
		file:  "licet-overview.json",
		uid:   "licet-overview",
		title: "Licet / Overview",
		about: "Is the service well: what it is asked, what it answers, how long that takes, and how much of " +
			"its error budget remains. Begin here.",
		tags:      []string{"service"},
		variables: ofNodes(),
		rows: []row{
			{"At a glance", []panel{
				{title: "Requests", unit: "reqps", show: number,
					about:   "Requests answered in a second, without probes and scrapes.",
					queries: []query{{served, ""}}},
				{title: "Server errors", unit: "percentunit", show: number,
					about: "Share of requests that were answered with a status of 500 or above. The error budget " +
						"is 0.1 %; see the burn rates for what alerts.",
					queries: []query{{share(sum("", rate(licet(requestCount, noProbe, failed))), served), ""}},
					steps:   []step{warning(0.001), critical(0.0144)}, runbooks: []string{"LicetErrorBudgetBurn"}},
				{title: "Activation p99", unit: "s", show: number,
					about:   "Time within which 99 % of activations were answered. The objective is 100 ms.",
					queries: []query{{quantile("0.99", "", licet(requestBuckets, activating)), ""}},
					steps:   []step{warning(0.1)}, runbooks: []string{"LicetLatencyBudgetBurn"}},
				{title: "Nodes ready", unit: "short", show: number, empty: "none",
					about:    "Nodes that answer /readyz with 200. Load balancers send requests to these nodes.",
					queries:  []query{{sum("", licet("licet_ready")), ""}},
					runbooks: []string{"LicetNoNodeReady", "LicetNodeDown"}},
				{title: "Invariant violations", unit: "short", show: number,
					about: "Records that contradict themselves, found in the time shown. Always 0 unless there is " +
						"a bug.",
					queries: []query{{sum("", grown(licet("licet_invariant_violations_total"))), ""}},
					steps:   []step{critical(0.5)}, runbooks: []string{"LicetInvariantViolated"}},
				{title: "Panics", unit: "short", show: number,
					about:   "Panics caught in the time shown. Each is a bug; its stack is in the log.",
					queries: []query{{sum("", grown(licet("licet_panics_total"))), ""}},
					steps:   []step{critical(0.5)}, runbooks: []string{"LicetPanics"}},
			}},
			{"Requests: rate, errors, duration", []panel{
				{title: "Requests by route", unit: "reqps", legend: true, width: 12,
					about: "Requests answered in a second, by method and route.",
					queries: []query{{sum("method, route", rate(licet(requestCount, noProbe))),
						"{{method}} {{route}}"}}},
				{title: "Requests by status", unit: "reqps", show: stacked, width: 12,
					about:   "Requests answered in a second, by HTTP status. 4xx are the callers' doing, 5xx are ours.",
					queries: []query{{sum("code", rate(licet(requestCount, noProbe))), "{{code}}"}}},
				{title: "Errors by code", unit: "reqps", legend: true, width: 12,
					about: "Answers that refuse or fail, in a second, by the code in their envelope. " +
						"docs/reference/api.md has what each means: 40901 is a license without a free slot, 42900 a " +
						"rate limit, 50301 too much load, 50400 an outcome that is unknown.",
					queries: []query{{
						sum("error", rate(licet("licet_http_responses_total", noProbe, `error!=""`))), "{{error}}",
					}}},
				{title: "Server errors by route", unit: "percentunit", legend: true, width: 12,
					about: "Share of each route's requests that were answered with a status of 500 or above.",
					queries: []query{{
						share(sum("method, route", rate(licet(requestCount, noProbe, failed))),
							sum("method, route", rate(licet(requestCount, noProbe)))),
						"{{method}} {{route}}",
					}},
					steps: []step{warning(0.001), critical(0.0144)}, runbooks: []string{"LicetErrorBudgetBurn"}},
				{title: "Duration", unit: "s", traces: true,
					about: "Time to answer a request: half, 95 % and 99 % of all were quicker. GET /v1/events is " +
						"left out, since it may wait for events. Points are traces, where tracing is on.",
					queries: []query{
						{quantile("0.5", "", licet(requestBuckets, noEvents)), "p50"},
						{quantile("0.95", "", licet(requestBuckets, noEvents)), "p95"},
						{quantile("0.99", "", licet(requestBuckets, noEvents)), "p99"},
					}},
				{title: "Duration by route, p99", unit: "s", legend: true, width: 16,
					about: "Time within which 99 % of a route's requests were answered. GET /v1/events may wait " +
						"for events, so for it a high value is well.",
					queries: []query{{quantile("0.99", "method, route", licet(requestBuckets, noProbe)),
						"{{method}} {{route}}"}},
					runbooks: []string{"LicetLatencyBudgetBurn"}},
				{title: "Duration of activations", unit: "s", show: heat, traces: true, width: 24,
					about: "How many activations took how long. A second band far above the first tells of a store " +
						"that stalls now and then.",
					queries: []query{{sum("le", rate(licet(requestBuckets, activating))), "{{le}}"}}},
			}},
			{"Service level objectives", []panel{
				burn("Availability: burn rate", "How fast the error budget of availability is used up: at 1 it lasts "+
					"exactly as long as it is meant to. Errors are answers of 500 and above, without 502, which the "+
					"payment provider causes. 14.4 over an hour and 6 over six hours are critical, 3 over a day and "+
					"1 over three days a warning.",
					"job_slo:licet_http_availability_errors", "LicetErrorBudgetBurn"),
				burn("Latency: burn rate", "How fast the error budget of latency is used up: 99 % of activations are "+
					"to be answered within 100 ms. 14.4 over an hour and 6 over six hours are critical, 3 over a day "+
					"and 1 over three days a warning.",
					"job_slo:licet_http_latency_errors", "LicetLatencyBudgetBurn"),
			}},
			{"Load", []panel{
				{title: "Requests in flight", unit: "short",
					about: "Requests being worked on, by node. Many more on one node than on others: look at the " +
						"load balancer.",
					queries: []query{{sum("pod, instance", licet("licet_http_requests_in_flight")), node}}},
				{title: "Rate limited", unit: "reqps", show: stacked,
					about: "Requests answered 42900 in a second, by the limit that was used up. address: behind a " +
						"load balancer, look whether --trusted-proxies names it.",
					queries: []query{{sum("limit", rate(licet("licet_rate_limited_total"))), "{{limit}}"}}},
				{title: "Shed", unit: "ops", show: stacked,
					about: "Commands and reads refused unexecuted in a second because of too much load, by " +
						"reason. limit: the nodes or the store are too small; share: a single license is stormed.",
					queries:  []query{{sum("reason", rate(licet("licet_commands_shed_total"))), "{{reason}}"}},
					runbooks: []string{"LicetShedding"}},
			}},
			processes(),
		},
	}
}

const noEvents = `route!~"/livez|/readyz|/metrics|/debug/pprof/.*|/v1/events"`

// burn shows how many times faster than it may an error budget is used up, over the
// windows that the alerts look at.
func burn(title, about, rule, runbook string) panel {
	p := panel{
		title:    title,
		about:    about,
		unit:     "short",
		of:       recording,
		steps:    []step{warning(1), warning(3), critical(6), critical(14.4)},
		runbooks: []string{runbook},
		width:    12,
	}
	for _, window := range []string{"1h", "6h", "1d", "3d"} {
		p.queries = append(p.queries, query{
			highest("slo", recorded(rule+":ratio_rate"+window)+" / on (job, namespace, slo) "+recorded(rule+":budget")),
			"{{slo}} " + window,
		})
	}
	return p
}

// processes returns the row about the nodes as the operating system and Go see them.
func processes() row {
	return row{"Processes", []panel{
		{title: "Processor time", unit: "short",
			about:   "Cores that each node uses.",
			queries: []query{{sum("pod, instance", ofNode(rate(licet("process_cpu_seconds_total")))), node}}},
		{title: "Memory", unit: "bytes",
			about: "Memory that each node has resident, and what of it Go's heap has in use.",
			queries: []query{
				{sum("pod, instance", ofNode(licet("process_resident_memory_bytes"))), node + " resident"},
				{sum("pod, instance", ofNode(licet("go_memstats_heap_inuse_bytes"))), node + " heap"},
			}},
		{title: "Bytes in flight", unit: "bytes",
			about: "Request bodies that each node waits for or works on, and responses that clients have not read yet.",
			queries: []query{
				{sum("pod, instance", ofNode(licet("licet_request_body_bytes"))), node + " bodies"},
				{sum("pod, instance", ofNode(licet("licet_response_bytes_in_flight"))), node + " responses"},
			}},
		{title: "Idle connections closed", unit: "cps",
			about: "Idle connections in a second that each node closed to accept others, because it had no room " +
				"for more.",
			queries: []query{{sum("pod, instance", ofNode(rate(licet("licet_idle_connections_closed_total")))), node}}},
		{title: "Goroutines", unit: "short",
			about: "Goroutines of each node. They follow connections and what is under way; a number that only " +
				"rises is a leak.",
			queries: []query{{sum("pod, instance", ofNode(licet("go_goroutines"))), node}}},
		{title: "Open files", unit: "percentunit",
			about: "Share of the file descriptors that each node may have which are open: connections, for the most " +
				"part.",
			queries: []query{{
				sum("pod, instance", ofNode(licet("process_open_fds"))) + " / " + sum("pod, instance",
					ofNode(licet("process_max_fds"))), node,
			}}},
		{title: "Garbage collection", unit: "percentunit",
			about:   "Share of the time that all of a node's goroutines stand still for Go's collector.",
			queries: []query{{sum("pod, instance", ofNode(rate(licet("go_gc_duration_seconds_sum")))), node}}},
		{title: "Up for", unit: "s",
			about: "How long each node has been running. A saw of many teeth is a node that restarts.",
			queries: []query{{"time() - " + highest("pod, instance", ofNode(licet("process_start_time_seconds"))),
				node}}},
		{title: "Builds", unit: "short", show: columns, width: 16, high: 5,
			about:   "What is running, and on how many nodes. Two rows are well while a new version rolls out.",
			queries: []query{{by("count", "version, revision, goversion", licet(build)), ""}}},
		{title: "Spans dropped", unit: "cps", show: stacked, high: 5,
			about: "Spans of traces that were lost, in a second, by reason, where tracing is on. Requests are " +
				"served all the same.",
			queries: []query{{sum("reason", rate(licet("licet_trace_spans_dropped_total"))), "{{reason}}"}}},
	}}
}
