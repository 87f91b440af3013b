// Package trial is the frame that load tests with a verdict share: the command line, a tally of operations and
// problems, the kills of nodes, and the report. It knows no shop and no webhooks. The programs run and money
// use it.
//
// Files:
//
//	command.go  the program, from its command line to its exit code
//	options.go  flags that every trial has
//	tally.go    counts of operations and problems; clients that count repeated requests
//	scene.go    a service whose nodes are killed while a trial acts, from its start to its end
//	havoc.go    when to kill a node, and killing it
//	report.go   the report
package trial
