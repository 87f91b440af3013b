// Command offline is an example of a program that users install: a user activates the program once on a device with a
// network, and then the program starts without one, by the receipt of the activation.
//
//	offline activate LICENSE-KEY
//	offline
//	offline deactivate
//
// On a device that never has a network, the program makes a request for a receipt file, takes the file, and gives the
// device slot back. It also verifies the file for a request of licet offline request. See docs/guides/offline.md.
//
//	offline request LICENSE-KEY
//	offline import FILE
//	offline release
//	offline verify DEVICE-ID REQUEST FILE
//
// The map of the package:
//
//	main.go    the commands
//	airgap.go  commands for a device without network
package main
