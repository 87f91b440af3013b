// Package archtest checks the architecture: which package may import which, which packages stay pure, where fasthttp and
// etcd stop, which names need a comment, and that no package-level variable changes. It also checks the pages: links
// between them lead to files and headings, and lines have at most 120 columns.
//
// The table in packages_test.go is the order of the packages. A new package needs a row there before any other check
// passes. The checks read syntax only: they need no network and no build, and take well under a second.
package archtest
