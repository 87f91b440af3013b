package main

import "runtime"

// threadsPerCore is how many threads run Go for each core of a machine that
// this process may use as a whole.
//
// Go's scheduler looks at the network when a thread has nothing else to run,
// or every 10 ms (runtime/proc.go: findRunnable, sysmon). In a flood no thread
// ever has nothing to run, since thousands of connections are ready to be
// read, and etcd's answers, which free those who wait and make room for more,
// come up to 10 ms late each time. With more threads than cores the kernel
// shares the cores out between them, some thread is idle ever so often, and
// etcd's answers are taken at once.
const threadsPerCore = 2

// threads is how many threads shall run Go; 0 leaves it to Go's runtime. So it
// is left where the environment says a number, and where a quota (a
// container's CPU limit) gives fewer than the machine has: with more threads it
// would be used up sooner, and the process stand still for the rest of each
// period.
func threads(lookup func(string) (string, bool), byRuntime, cores int) int {
	if text, _ := lookup("GOMAXPROCS"); text != "" || byRuntime < cores {
		return 0
	}
	return threadsPerCore * cores
}

// setThreads tells the runtime.
func setThreads(lookup func(string) (string, bool)) {
	if n := threads(lookup, runtime.GOMAXPROCS(0), runtime.NumCPU()); n > 0 {
		runtime.GOMAXPROCS(n)
	}
}
