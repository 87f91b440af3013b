// Package trial is the frame of load tests that end with a verdict: the command line, a
// tally of what was done and of problems, and the report.
//
// Files:
//   - command.go: the program, from its command line to its exit code
//   - options.go: flags that every trial has
//   - tally.go: counts and problems, and clients that count what they repeat
//   - each.go: doing many things, some at a time
//   - report.go: the report
//   - trialtest: tests that run a trial in small
package trial
