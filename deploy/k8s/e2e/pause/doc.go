// Command pause keeps the namespaces of a pod in deploy/k8s/e2e, as the pause container of Kubernetes does, until it
// gets SIGTERM.
//
// The map of the package:
//
//	main.go  the program
package main
