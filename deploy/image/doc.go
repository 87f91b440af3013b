// Command image writes the container image of Licet as a tar file that docker load, ctr, podman and crane read, and
// beside it the list of the image's contents (SBOM). It needs no container engine. The same programs make the same
// bytes on every machine. Its tests also compare the image with the Dockerfile and with .dockerignore.
//
//	image tar --programs DIR --out DIR [--image licet:dev …]
//	image layout --out FILE [--image licet:dev …] DIR…
//	image list --out FILE DIR…
//	image roots FILE
//
// The first form makes the image from the programs in a folder. The second form makes an image for several platforms,
// one folder a platform, as the tar file of an OCI layout. The third form writes only the list of programs of any
// platform and of the modules in them. The last form writes only the certificates of the public certificate
// authorities, which the Dockerfile needs.
//
// The map of the package:
//
//	main.go    the program
//	layout.go  an image for several platforms, as an OCI layout
//	layers.go  the layers of the image, as tar files
//	sbom.go    the list of its contents (SPDX), from the programs' build information
package main
