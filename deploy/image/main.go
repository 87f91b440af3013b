package main

import (
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "roots":
		return writeRoots(args[1])
	case len(args) > 0 && args[0] == "tar":
		return writeImage(args[1:], stdout)
	}
	return errors.New("image tar --programs DIR --out DIR, or image roots FILE")
}

// writeRoots writes the certificates of the public authorities in PEM.
func writeRoots(path string) error {
	pem, err := roots()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, pem, 0o644)
}

// writeImage writes the tar and the list of its contents.
func writeImage(args []string, stdout io.Writer) error {
	var in stamp
	flags := flag.NewFlagSet("image tar", flag.ContinueOnError)
	dir := flags.String("programs", "", "folder with the programs, and nothing else")
	out := flags.String("out", "", "folder to write licet.tar and licet.cdx.json into")
	reference := flags.String("image", "licet:dev", "name and tag of the image")
	created := flags.String("created", "", "when that was made, such as the time of the commit; empty: 1970")
	flags.StringVar(&in.version, "version", "dev", "version of the programs")
	flags.StringVar(&in.revision, "revision", "", "commit that the programs were built from")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || *out == "" || flags.NArg() > 0 {
		return errors.New("--programs and --out are needed, and nothing else but flags")
	}
	in.created = time.Unix(0, 0).UTC()
	if *created != "" {
		at, err := time.Parse(time.RFC3339, *created)
		if err != nil {
			return fmt.Errorf("--created: %w", err)
		}
		in.created = at.UTC()
	}
	tag, err := name.NewTag(*reference)
	if err != nil {
		return fmt.Errorf("--image: %w", err)
	}
	programs, err := readPrograms(*dir)
	if err != nil {
		return err
	}
	image, err := build(programs, in)
	if err != nil {
		return err
	}
	list, err := components(programs, in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(*out, "licet.tar")
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(*out, "licet.cdx.json"), list, 0o644); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s %s\n", path, tag, digest)
	return err
}

// program is an executable file of the image.
type program struct {
	name  string
	bytes []byte
	info  *buildinfo.BuildInfo
}

// readPrograms reads the programs of a folder, sorted by name. They must be Go programs
// for Linux, without C: the image has no libraries.
func readPrograms(dir string) ([]program, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []program
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s is no program of Go: %w", path, err)
		}
		p := program{name: entry.Name(), info: info}
		for key, want := range map[string]string{"CGO_ENABLED": "0", "GOOS": "linux", "-trimpath": "true"} {
			if have := p.setting(key); have != want {
				return nil, fmt.Errorf("%s was built with %s=%q; it must be %s", path, key, have, want)
			}
		}
		if p.setting("GOARCH") != "" && len(list) > 0 && p.setting("GOARCH") != list[0].setting("GOARCH") {
			return nil, fmt.Errorf("%s is for another processor than %s", path, list[0].name)
		}
		if p.bytes, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no program in %s", dir)
	}
	return list, nil
}

// setting returns a build setting of a program.
func (p *program) setting(key string) string {
	for _, s := range p.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
