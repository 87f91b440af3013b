// Command webhook-receiver is an example of a program that receives webhooks from a Licet service. It verifies each
// message, prints each event once, and stores the ids of seen events in a file.
//
// The map of the package:
//
//	main.go  the program: verifying and printing messages
//	seen.go  the file of seen event ids
package main
