// Command offline is an example of a program that users install: a user activates the program once on a device with a
// network, and then the program starts without one, by the receipt of the activation.
//
//	offline activate LICENSE-KEY
//	offline
//	offline deactivate
//
// The map of the package:
//
//	main.go  the commands
package main
