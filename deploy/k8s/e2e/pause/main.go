// Command pause is what the sandbox of a pod runs: it holds the pod's namespaces, and ends
// when it is told to.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
