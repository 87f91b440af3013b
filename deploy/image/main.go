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

	cdx "github.com/CycloneDX/cyclonedx-go"
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
	case len(args) > 0 && args[0] == "layout":
		return writeLayout(args[1:], stdout)
	case len(args) > 0 && args[0] == "list":
		return writeList(args[1:])
	}
	return errors.New("image tar --programs DIR --out DIR, image layout --out FILE DIR…, image list --out FILE DIR…, " +
		"or image roots FILE")
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
	flags := flag.NewFlagSet("image tar", flag.ContinueOnError)
	in := stampFlags(flags)
	dir := flags.String("programs", "", "folder with the programs, and nothing else")
	out := flags.String("out", "", "folder to write licet.tar and licet.cdx.json into")
	reference := flags.String("image", "licet:dev", "name and tag of the image")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || *out == "" || flags.NArg() > 0 {
		return errors.New("--programs and --out are needed, and nothing else but flags")
	}
	tag, err := name.NewTag(*reference)
	if err != nil {
		return fmt.Errorf("--image: %w", err)
	}
	programs, err := readPrograms(*dir)
	if err != nil {
		return err
	}
	image, err := build(programs, *in)
	if err != nil {
		return err
	}
	list, err := components(cdx.ComponentTypeContainer, programs, *in)
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

// stampFlags adds the flags that describe what the programs were built from.
func stampFlags(flags *flag.FlagSet) *stamp {
	in := &stamp{created: time.Unix(0, 0).UTC()}
	flags.StringVar(&in.version, "version", "dev", "version of the programs")
	flags.StringVar(&in.revision, "revision", "", "commit that the programs were built from")
	flags.Func("created", "time of the commit (default: 1970)", func(text string) error {
		if text == "" {
			return nil
		}
		at, err := time.Parse(time.RFC3339, text)
		in.created = at.UTC()
		return err
	})
	return in
}

// program is an executable file of the image or of a release.
type program struct {
	name  string
	bytes []byte
	info  *buildinfo.BuildInfo
}

// readPrograms reads the programs of a folder for the image, sorted by name. They must be Go programs for Linux,
// without C: the image has no libraries.
func readPrograms(dir string) ([]program, error) {
	list, err := readAny(dir)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if have := p.setting("GOOS"); have != "linux" {
			return nil, fmt.Errorf("%s was built with GOOS=%q; it must be linux", filepath.Join(dir, p.name), have)
		}
	}
	return list, nil
}

// readAny reads the programs of a folder, sorted by name: Go programs without C, all for the same platform.
func readAny(dir string) ([]program, error) {
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
		for key, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true"} {
			if have := p.setting(key); have != want {
				return nil, fmt.Errorf("%s was built with %s=%q; it must be %s", path, key, have, want)
			}
		}
		if len(list) > 0 && p.platform() != list[0].platform() {
			return nil, fmt.Errorf("%s is for another platform than %s", path, list[0].name)
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

// platform returns the operating system and the processor that a program was built for, such as linux/arm64.
func (p *program) platform() string { return p.setting("GOOS") + "/" + p.setting("GOARCH") }
