// Command release builds the files of a release of Licet: an archive for each platform, Debian packages, a container
// image for several platforms, the list of the contents (SBOM) and the checksums. It needs Go and the module proxy; it
// needs no container engine. The same commit makes the same bytes on every machine, in every folder.
//
//	release --source REPOSITORY --out DIR --version 1.2.3 --revision 0123abc --created 2026-11-22T13:00:00Z
//
// The map of the package:
//
//	main.go      the program and its settings
//	programs.go  the programs and the scripts of shell completion
//	documents.go the documentation, with the links that work in an archive
//	archive.go   archives, as tar.gz and zip
//	deb.go       Debian packages
//	version.go   the versions of Debian packages
//	sums.go      checksums
//	debian/      the unit of systemd, the settings and the scripts of the Debian packages
package main
