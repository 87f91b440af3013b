package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeLayout writes an OCI layout whose index has an image for each folder of programs.
func writeLayout(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("image layout", flag.ContinueOnError)
	in := stampFlags(flags)
	out := flags.String("out", "", "tar file to write")
	reference := flags.String("image", "licet:dev", "name and tag of the image")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New("image layout needs --out and folders with programs, one for each platform")
	}
	tag, err := name.NewTag(*reference)
	if err != nil {
		return fmt.Errorf("--image: %w", err)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]bool{}
	for _, dir := range flags.Args() {
		programs, err := readPrograms(dir)
		if err != nil {
			return err
		}
		platform := programs[0].platform()
		if seen[platform] {
			return fmt.Errorf("%s: there are programs for %s already", dir, platform)
		}
		seen[platform] = true
		image, err := build(programs, *in)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: programs[0].setting("GOARCH")}}})
	}
	dir, err := os.MkdirTemp("", "licet-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// podman, skopeo and containerd find the image by these names.
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag.TagStr(), "io.containerd.image.name": tag.String(),
	}))
	if err != nil {
		return err
	}
	if err := packFolder(dir, *out); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s %s\n", *out, tag, digest)
	return err
}

// packFolder writes the files below a folder into a tar file.
func packFolder(dir, out string) error {
	var files []file
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files = append(files, file{"/" + name, 0o644, text})
		return err
	})
	if err != nil {
		return err
	}
	packed, err := pack(files)
	if err != nil {
		return err
	}
	return os.WriteFile(out, packed, 0o644)
}

// writeList writes the list of the programs in all folders and of the modules in them.
func writeList(args []string) error {
	flags := flag.NewFlagSet("image list", flag.ContinueOnError)
	in := stampFlags(flags)
	out := flags.String("out", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() == 0 {
		return errors.New("image list needs --out and folders with programs")
	}
	var all []program
	for _, dir := range flags.Args() {
		programs, err := readAny(dir)
		if err != nil {
			return err
		}
		all = append(all, programs...)
	}
	list, err := components(cdx.ComponentTypeApplication, all, *in)
	if err != nil {
		return err
	}
	return os.WriteFile(*out, list, 0o644)
}
