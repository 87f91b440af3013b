package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// allPlatforms are the platforms of a release.
const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// release is what to build, and from which commit.
type release struct {
	source, out       string // absolute paths
	version, revision string
	created           time.Time
	platforms         []platform
}

// platform is an operating system and a processor, by Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

func run(args []string) error {
	r, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "licet-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, p := range r.platforms {
		fmt.Fprintf(os.Stderr, "release: building for %s\n", p) // each takes a minute or more
		if err := r.compile(p, filepath.Join(work, p.String())); err != nil {
			return err
		}
	}
	scripts, err := r.completions(work)
	if err != nil {
		return err
	}
	documents := filepath.Join(work, "documents")
	if err := r.documents(documents); err != nil {
		return err
	}
	var all, images []string // folders of programs
	var packers sync.WaitGroup
	packed := make([]error, len(r.platforms))
	for i, p := range r.platforms {
		folder := filepath.Join(work, p.String())
		all = append(all, folder)
		if p.os == "linux" {
			images = append(images, folder)
		}
		packers.Go(func() { packed[i] = r.pack(p, folder, scripts, documents) })
	}
	packers.Wait()
	if err := errors.Join(packed...); err != nil {
		return err
	}
	if len(images) > 0 {
		if err := r.image("layout", "image.tar", images, "--image", "licet:"+tag(r.version)); err != nil {
			return err
		}
	}
	if err := r.image("list", "cdx.json", all); err != nil {
		return err
	}
	return writeSums(r.out)
}

// pack writes the archive of a platform, and on Linux also the Debian package.
func (r *release) pack(p platform, programs, scripts, documents string) error {
	if err := r.archive(p, programs, scripts, documents); err != nil || p.os != "linux" {
		return err
	}
	return r.deb(p, programs, scripts, documents)
}

// parse reads the flags.
func parse(args []string) (*release, error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := &release{created: time.Unix(0, 0).UTC()}
	flags.StringVar(&r.source, "source", "", "repository to build from")
	flags.StringVar(&r.out, "out", "", "folder to write into; its content is removed first")
	flags.StringVar(&r.version, "version", "dev", "version of the release")
	flags.StringVar(&r.revision, "revision", "", "commit of the release")
	created := flags.String("created", "", "time of that commit (default: 1970)")
	platforms := flags.String("platforms", allPlatforms, "platforms to build for")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if r.source == "" || r.out == "" || flags.NArg() > 0 {
		return nil, errors.New("--source and --out are needed, and nothing else but flags")
	}
	if *created != "" {
		at, err := time.Parse(time.RFC3339, *created)
		if err != nil {
			return nil, fmt.Errorf("--created: %w", err)
		}
		r.created = at.UTC()
	}
	for name := range strings.SplitSeq(*platforms, ",") {
		if !slices.Contains(strings.Split(allPlatforms, ","), name) {
			return nil, fmt.Errorf("--platforms has %q; the platforms are %s", name, allPlatforms)
		}
		system, arch, _ := strings.Cut(name, "/")
		r.platforms = append(r.platforms, platform{system, arch})
	}
	var err error
	if r.source, err = filepath.Abs(r.source); err != nil {
		return nil, err
	}
	r.out, err = filepath.Abs(r.out)
	return r, err
}

// name returns the name of a file of the release, without a leading v before the version.
func (r *release) name(rest string) string {
	return filepath.Join(r.out, "licet-"+strings.TrimPrefix(r.version, "v")+rest)
}

// image runs a form of deploy/image over folders of programs.
func (r *release) image(form, file string, folders []string, more ...string) error {
	args := []string{"run", "-C", filepath.Join(r.source, "deploy/image"), ".", form, "--out", r.name("." + file),
		"--version", r.version, "--revision", r.revision, "--created", r.created.Format(time.RFC3339)}
	args = append(append(args, more...), folders...)
	return command(exec.Command("go", args...))
}

// tag returns the tag of the image: a tag may not have the plus sign of a version.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// command runs a command and shows its output if it fails.
func command(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
