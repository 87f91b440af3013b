// Package archtest checks the architecture: which package may import which, which packages read no
// clock, which packages use fasthttp and etcd, which names need a comment, and that no package-level
// variable changes. It also checks the pages: links lead to files and headings that exist. Lines of pages and of Go
// code have at most 120 columns.
//
// The table in packages_test.go contains the order of the packages: what each is for, and what it may import. A new
// package needs a row there. The checks read syntax only: they need no network and no build, and take less than a
// second. Tests of the checks run them on small modules, whose sources are strings in archtest_test.go.
//
// The map of the package:
//
//	packages_test.go    the table of packages, and the rules for third-party code
//	tree_test.go        reads and parses the module
//	imports_test.go     imports, and packages without a clock
//	etcd_test.go        requests to etcd
//	goroutines_test.go  goroutines and recover
//	outcomes_test.go    comparison of errors that say whether a command was executed
//	state_test.go       package-level variables
//	surface_test.go     names, comments and exported types
//	sizes_test.go       how many files a folder contains, and how many methods a type has
//	filemaps_test.go    the maps of files in package comments
//	modules_test.go     sizes, lines and maps of the other modules, and versions that modules share
//	docs_test.go        links and lines of pages, and the packages on the architecture page
//	commands_test.go    pages whose commands must have a test that runs them
//	archtest_test.go    runs the checks on the module, and on small modules with one violation each
package archtest
