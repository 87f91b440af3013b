package main

import "runtime"

// threadsPerCore is GOMAXPROCS divided by the number of cores, if the process may use the whole machine.
//
// Go's scheduler polls the network when a thread has nothing else to run, or every 10 ms (runtime/proc.go:
// findRunnable, sysmon). Under a flood of requests no thread is ever idle, because thousands of connections are ready
// to be read. Then responses of etcd, which release waiting requests, arrive up to 10 ms late. With more threads than
// cores the kernel shares the cores between them, a thread is idle often enough, and responses of etcd are read at
// once.
const threadsPerCore = 2

// threads returns the GOMAXPROCS to set, or 0 to keep the value of the runtime. It keeps that value if the environment
// sets GOMAXPROCS, or if a quota (the CPU limit of a container) grants fewer cores than the machine has: more threads
// would use up the quota sooner, and the process would stall for the rest of each period.
func threads(lookup func(string) (string, bool), byRuntime, cores int) int {
	if text, _ := lookup("GOMAXPROCS"); text != "" || byRuntime < cores {
		return 0
	}
	return threadsPerCore * cores
}

// setThreads sets GOMAXPROCS.
func setThreads(lookup func(string) (string, bool)) {
	if n := threads(lookup, runtime.GOMAXPROCS(0), runtime.NumCPU()); n > 0 {
		runtime.GOMAXPROCS(n)
	}
}
