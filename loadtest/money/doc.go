// Money sells through Stripe: thousands of buyers pay, fail to pay, cancel, pay late, dispute and subscribe at a
// stand-in for Stripe, whose requests fail and whose callbacks are late, doubled, shuffled or missing, while nodes are
// killed and started again.
// Then it proves that each purchase has exactly its licenses, and that every cent is accounted for: the ledgers of the
// stand-in and of the shop, the payment records, the orders, the sales report and the export are equal. See the chapter
// "money" of loadtest/README.md.
//
// The command line, the kills and the frame of the report are in loadtest/trial; nodes, balancer and browser in
// loadtest/stage; the stand-in in internal/fakestripe.
//
// Files:
//
//	main.go         the program
//	config.go       flags
//	plan.go         what each buyer will do, from a seed
//	run.go          the run, from start to report
//	buyers.go       the buyers carry out the plan
//	subscribers.go  the buyers of subscriptions, and what the shop changes about these
//	disputes.go     disputes of payments
//	books.go        reading back all that the service and Stripe say
//	audit.go        comparing each purchase with the money that Stripe and the shop have of it
//	sums.go         comparing the sums of all books, by currency
package main
