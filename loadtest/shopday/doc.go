// Shopday plays a whole day of a shop against two nodes in front of one etcd, and then
// compares the shop's own ledger with what the service says, record by record and sum by
// sum. Buyers order and pay, some of them twice, late or after they canceled; licenses are
// activated, moved, suspended, renewed and refunded; API keys and the master key are
// replaced; products change their terms. Meanwhile one node is killed, and both are
// restarted one after the other. See the README one folder up.
//
// Files:
//   - main.go, config.go, stage.go: the program, its flags, and the nodes
//   - plan.go, catalog.go: what will happen, from a seed, and the products
//   - day.go: the day from opening to closing
//   - shop.go: everybody who does something on the day
//   - orders.go, payments.go, refunds.go: orders and money
//   - desk.go, devices.go: licenses and devices
//   - keys.go, masterkeys.go: API keys and master keys
//   - redactions.go: buyers who are redacted
//   - ledger.go: what must be
//   - books.go: what the service lists
//   - audit.go, sums.go, closing.go: the comparison
package main
