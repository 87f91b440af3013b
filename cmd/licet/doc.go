// Command licet runs the licensing and order service, calls a service, and works on a store. This package holds flags,
// wiring and signals.
//
// The commands that call a service (orders, licenses, webhooks, keys and so on) are in internal/cli; CSV files are in
// internal/bulk. licet store and its commands, which work on etcd without a service, are here.
//
// The tests run the whole program: the binary as a process, its commands in a shell, several nodes on members of etcd
// that the tests kill, and every route with valid, invalid and foreign input over TCP. They also run the commands that
// the guides print, compare help texts and settings with the pages in docs, and search logs, traces and metrics for
// secrets. Tests of one route are in handlers, and histories that a model checks are in internal/history.
//
//	main.go             exit codes, signals, usage errors
//	root.go             the command line and its groups; licet dev, licet version
//	config.go           settings that licet dev and licet serve share; environment variables of flags; the log
//	etcdflags.go        settings of a connection to etcd
//	storeflags.go       settings that name a store; opening the store, which must exist
//	storeetcd.go        the etcd of a data directory, in a child process of licet store
//	tracing.go          settings of traces; starting the tracer
//	webhooks.go         settings of events and webhooks; starting the delivery
//	networks.go         settings that are lists of networks
//	address.go          listeners on the addresses of flags
//	certificate.go      the TLS certificate of a listener, read again when its files change
//	dev.go              licet dev: embedded etcd, keys, readiness
//	supervise.go        the parent of a child process with an etcd, which turns a crash into one line
//	datadir.go          the files of a data directory, with the API keys that licet dev makes
//	private_linux.go    who can read a file of secrets; elsewhere: private_other.go
//	quickstart.go       the commands that licet dev prints
//	serve.go            licet serve: one node on an etcd cluster
//	service.go          the parts of a service, from the listeners to the API
//	lifecycle.go        starting and stopping parts
//	peers.go            commands from and to other nodes
//	threads.go          GOMAXPROCS
//	memoryreleaser.go   returning memory to the system after a load
//	build.go            version and revision
//	doctor.go           licet doctor; its judgments are in internal/doctor
//	storecommands.go    licet store and its commands
//	storekeys.go        licet store keys
//	storekeysoutput.go  the output of licet store keys
//	masterkey.go        licet store master-key new and add: creates master keys, writes the file with the ring
//	masteruse.go        licet store master-key status and retire
//	verify.go           licet store verify
//	backup.go           licet store backup and restore
//	defragment.go       licet store defragment
//	storeusers.go       licet store users
package main
