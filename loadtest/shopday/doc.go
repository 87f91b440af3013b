// Shopday plays a whole day of a shop against two nodes in front of one etcd. Then it compares the shop's own ledger
// with what the service says, record by record and sum by sum. Buyers order and pay, some of them twice, late or after
// they canceled; licenses are activated, moved, suspended, renewed and refunded; API keys and the master key are
// replaced; products change their terms. Meanwhile one node is killed, and both are restarted one after the other. See
// the chapter "shop day" of loadtest/README.md.
//
// All requests go through package client. Webhooks are not played here: loadtest/webhookrun does. The command line and
// the report's frame are in loadtest/trial; nodes, balancer and browser in loadtest/stage.
//
// Files:
//
//	main.go        the program
//	config.go      flags
//	stage.go       the two nodes
//	plan.go        what will happen on the day, from a seed
//	catalog.go     the products and their terms
//	day.go         the hours of the day, from opening to closing, and the kills and restarts
//	shop.go        what all roles share: clients, ledger, checks of responses; the roles of the day
//	orders.go      placing and canceling orders
//	payments.go    paying on the pay page
//	refunds.go     refunding orders
//	desk.go        support: suspend, reinstate, revoke, renew and move licenses
//	devices.go     activating and deactivating devices
//	keys.go        creating, rotating and revoking API keys
//	masterkeys.go  replacing the master key
//	redactions.go  redacting buyers
//	ledger.go      the shop's ledger: what each order and license must be
//	books.go       what the service lists
//	audit.go       comparing the ledger with the service, record by record
//	sums.go        comparing sums
//	closing.go     the end of the day: reading everything back, and the report
package main
