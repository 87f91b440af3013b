package main

import (
	"licet/loadtest/rig"
	"licet/loadtest/trial"
)

const programName = "webhooks"

func main() { rig.Main(program().Command) }

func program() *trial.Program[*config] {
	return &trial.Program[*config]{Name: programName, Parse: parseConfig, Run: run}
}
