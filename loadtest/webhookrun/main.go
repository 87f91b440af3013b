// Webhookrun has a shop's orders, activations and removals told to webhook endpoints
// by three nodes, which are killed and started again all the time, and then proves
// that every event was delivered and none was made up. One endpoint is well, one
// fails a fifth of the calls, and one hangs. See the README one folder up.
package main

import (
	"licet/loadtest/rig"
	"licet/loadtest/trial"
)

const programName = "webhookrun"

func main() { rig.Main(program().Command) }

func program() *trial.Program[*config] {
	return &trial.Program[*config]{Name: programName, Parse: parseConfig, Run: run}
}
