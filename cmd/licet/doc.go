// Command licet runs the licensing and order service, calls a service, and works on a store. This package has flags,
// wiring and signals.
//
// A command that works on etcd or serves is here: licet dev, serve, doctor, and licet store with its commands. So are
// licet payments connect stripe, which calls only Stripe, and licet version. A command that calls a service is in
// internal/cli. Where both have a command, such as licet keys and licet store keys,
// the one in internal/cli uses package client, and the one here opens a kv.Store.
//
// The commands here contain flags and output; the work is elsewhere:
//
//	kv/verify, kv/backup, kv/users     licet store verify, backup, restore, defragment and users
//	internal/doctor, with kv/survey    licet doctor
//	node/service                       licet store keys, and everything that licet serve answers
//	internal/cli                       the commands that call a service
//	internal/bulk                      licet licenses export and import: CSV files
//	internal/migrate                   licet import: licenses of other services
//	internal/terminal                  questions, secrets, progress and colors on a terminal
//
// The TLS of the HTTP listener is set up here (service.go, certificate.go): package handlers only serves the listener.
//
// The tests run the whole program: the binary as a process, its commands in a shell, several nodes on members of etcd
// that the tests kill, and every route with valid, invalid and foreign input over TCP. They also run the commands that
// the guides print, compare help texts and settings with the pages in docs, and search logs, traces and metrics for
// secrets. Tests of one route are in handlers, and histories that a model checks are in internal/history.
//
//	main.go             exit codes, signals, usage errors
//	root.go             the command line and its groups; licet dev, licet version
//	config.go           each setting that licet dev and licet serve share, with flag and environment variable; the log
//	etcdflags.go        settings of a connection to etcd; checks endpoints, and adds http:// or https://
//	storeflags.go       settings that name a store; opening the store, which must exist, for a command of licet store
//	storeetcd.go        the etcd of a data directory, in a child process of licet store
//	tracing.go          settings of traces; starting the tracer
//	webhooks.go         settings of events and webhooks; starting the delivery
//	payments.go         settings of payment providers; the provider of each account and mode
//	paymentsconnect.go  licet payments connect stripe
//	secretfile.go       the secrets of an account at Stripe, read again when their files change
//	networks.go         settings that are lists of networks
//	address.go          listeners on the addresses of flags
//	certificate.go      the TLS certificate of a listener, read again when its files change
//	dev.go              licet dev: embedded etcd, keys, readiness
//	supervise.go        the parent of a child process with an etcd, which turns a crash into one line
//	datadir.go          the files of a data directory, with the API keys that licet dev makes
//	private_linux.go    who can read a file of secrets; elsewhere: private_other.go
//	quickstart.go       the commands that licet dev prints
//	serve.go            licet serve: one node on an etcd cluster
//	service.go          the parts of a service: listeners, with TLS; store, node, API; flags as limits of requests
//	lifecycle.go        starting and stopping parts
//	peers.go            the listener for other nodes, and the client to them
//	threads.go          GOMAXPROCS
//	memoryreleaser.go   returning memory to the system after a load
//	build.go            version and revision
//	doctor.go           licet doctor: flags, and what it examines; its checks are in internal/doctor
//	storecommands.go    licet store and its commands
//	storekeys.go        licet store keys
//	storekeysoutput.go  the output of licet store keys
//	masterkey.go        licet store master-key new and add: creates master keys, writes the file with the ring
//	masteruse.go        licet store master-key status and retire
//	verify.go           licet store verify: flags, and the output as a table or as JSON
//	backup.go           licet store backup and restore: flags and output
//	defragment.go       licet store defragment: flags and output
//	storeusers.go       licet store users: flags and output
package main
