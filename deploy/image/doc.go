// Command image writes the container image of Licet as a tar file that docker load, ctr, podman and crane read, and
// beside it the list of the image's contents (SBOM). It needs no container engine. The same programs make the same
// bytes on every machine. Its tests also compare the image with the Dockerfile and with .dockerignore.
//
//	image tar --programs DIR --out DIR [--image licet:dev …]
//	image roots FILE
//
// The first form makes the image from the programs in a folder. The second form writes only the certificates of the
// public certificate authorities, which the Dockerfile needs.
//
// The map of the package:
//
//	main.go    the program
//	layers.go  the layers of the image, as tar files
//	sbom.go    the list of its contents (SPDX), from the programs' build information
package main
