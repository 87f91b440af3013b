// Compare measures how fast Licet is beside the etcd below it: both on this machine, in one run, in turns. It prints a
// table of promised and measured ratios, and one line of JSON. The chapter "compare" of loadtest/README.md documents
// each row of the table.
//
// The package has a load generator of its own, since k6 would take the processor time that is to be measured: one
// thread drives many keep-alive connections with raw sockets and epoll, writes HTTP requests as bytes, and reads
// envelopes with their codes. With 128 connections it takes 9 µs of processor time a request, where fasthttp's client
// with a goroutine for each connection takes 14 µs: a tenth of what a fast row leaves to the node. Other load tests use
// package client.
//
// The package proves no correctness: loadtest/run and loadtest/money do. Package loadtest/stage
// starts the processes that compare measures. Everything that measures a rate, a latency or memory with Go's own load
// is here; loadtest/run has k6 make the load.
//
// The program and its table:
//
//	main.go            the program: which measurements run, each on a store of its own
//	config.go          flags, and how much is measured
//	rows.go            the rows of the table and their bounds
//	failure.go         errors that end a measurement
//	report.go          the figures, the table, the JSON, which bounds were missed, and which samples are too small
//
// The measurements:
//
//	lab.go             an etcd with the node that is measured on it, and the costs of a load
//	rounds.go          the rows that a ratio to single puts and gets of etcd describes
//	storm.go           new devices while many activations hit one license
//	guessing.go        new devices while made-up license keys come
//	sweep.go           the number of requests at a time with the highest rate
//	growth.go          licenses with very many devices; an etcd of three members
//	footprint.go       memory of a node with many licenses and connections
//	against.go         this program against another, such as an older build
//	placement.go       several nodes on one etcd
//	eventson.go        the cost of events and deliveries
//	accounts.go        licenses of many accounts against licenses of one
//	external.go        external keys against license keys
//	receipts.go        activations with receipts against activations without, and against signatures
//	leases.go          renewals of leases against new leases
//	backlog.go         delivering a backlog of events to a webhook endpoint
//	fair.go            one account against another
//	attacks.go         the list of attacks of the row fair; ordinary requests instead of attacks, as controls
//	nodeattacks.go     attacks of the row fair that share the measured node
//	readattacks.go     attacks of the row fair that read, wait, or begin requests
//	writeattacks.go    attacks of the row fair that write much, or to many licenses
//	capacity.go        a store of millions of devices: disk, memory, duration of the operator's tasks
//	capacitycare.go    these tasks: compaction, defragmentation, backup, restore, verification
//	fill.go            filling such a store
//
// The load generator:
//
//	loop.go            closed and open loops of operations, their rates and latencies
//	fleet.go           many connections to nodes, driven by one goroutine
//	conn.go            parsing responses
//	poller_linux.go    epoll
//	poller_other.go    an error on other systems
//	request.go         the bytes of requests, and ids of devices by number
//	seed.go            licenses and activations of a load
//	sink.go            a fast receiver of webhooks
//	etcdload.go        puts and gets of etcd alone: the baseline
//	machine.go         what machine this is
package main
