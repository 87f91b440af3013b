// Shopday plays a whole day of a shop against two nodes before one etcd, and then
// compares the shop's own ledger with what the service says, thing by thing and
// sum by sum. Orders are made and paid as buyers do, some of them twice, late or
// after they were canceled; licenses are activated, moved, suspended, renewed and
// refunded; API keys and the master key are replaced; products change their terms.
// One node is killed in the middle, and both are restarted one after the other,
// while all this goes on. See the README one folder up.
package main

import (
	"licet/loadtest/rig"
	"licet/loadtest/trial"
)

const programName = "shopday"

func main() { rig.Main(program().Command) }

func program() *trial.Program[*config] {
	return &trial.Program[*config]{Name: programName, Parse: parseConfig, Run: play}
}
