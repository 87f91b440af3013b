// Command notes is an example of a program that is sold with licenses: a user activates the program once on a device,
// each start checks the license, and the user may free the device. docs/tutorials/license-your-program.md explains the
// program step by step.
//
//	notes activate LICENSE-KEY
//	notes
//	notes deactivate
//
// The map of the package:
//
//	main.go     the commands
//	license.go  the license: activation, the check at each start, deactivation
package main
