package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const repository = "../.."

// made is an image with the repository's programs, and what the Dockerfile's arguments were.
type made struct {
	dir   string
	image v1.Image
	args  map[string]string
}

// makeImage does what make image does.
func makeImage(t *testing.T, programs string) made {
	t.Helper()
	m := made{dir: t.TempDir(), args: map[string]string{
		"VERSION": "1.2.3", "REVISION": "0123abc", "CREATED": "2026-11-22T13:00:00Z", "TARGETOS": "linux",
		"TARGETARCH": "amd64",
	}}
	args := []string{
		"tar", "--programs", programs, "--out", m.dir, "--image", "registry.example.com/licet:1.2.3",
		"--version", m.args["VERSION"], "--revision", m.args["REVISION"], "--created", "2026-11-22T14:00:00+01:00",
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "."}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "registry.example.com/licet:1.2.3 sha256:") {
		t.Fatalf("image tar: %v\n%s", err, out)
	}
	var err error
	if m.image, err = tarball.ImageFromPath(filepath.Join(m.dir, "licet.tar"), nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// files reads the files of an image.
func files(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	list := map[string]*tar.Header{}
	content := mutate.Extract(image)
	defer content.Close()
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		h.PAXRecords = map[string]string{"sha256": hex.EncodeToString(sum[:])}
		list["/"+strings.TrimSuffix(h.Name, "/")] = h
	}
}

// TestDockerfileMakesTheSame walks through the Dockerfile by hand: its build stage's commands
// are run over what .dockerignore lets in, and what comes of them, with the settings of the
// last stage, is the image that was made without an engine.
func TestDockerfileMakesTheSame(t *testing.T) {
	d := readDockerfile(t)
	root := t.TempDir()
	source := filepath.Join(root, "src")
	copyContext(t, source)
	programs := filepath.Join(root, "out/usr/local/bin")
	m := made{args: map[string]string{"VERSION": "1.2.3", "REVISION": "0123abc", "CREATED": "2026-11-22T13:00:00Z",
		"TARGETOS": "linux", "TARGETARCH": "amd64"}}
	for _, command := range d.runs {
		// The stage's root is a folder here.
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(command, " /out/", " "+root+"/out/"))
		cmd.Dir = source
		cmd.Env = os.Environ()
		if strings.Contains(command, "go build") {
			// Go's image has a C compiler, and no settings: the command sets everything.
			cmd.Env = append(cmd.Env, "CGO_ENABLED=1", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath=false")
		}
		for name, value := range m.args {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	m = makeImage(t, programs)
	sameAsMake(t, programs, m.args)

	have := files(t, m.image)
	var want []string
	err := filepath.WalkDir(filepath.Join(root, "out"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == filepath.Join(root, "out") {
			return err
		}
		name := "/" + strings.TrimPrefix(path, filepath.Join(root, "out")+"/")
		want = append(want, name)
		h := have[name]
		if h == nil {
			t.Errorf("%s is not in the image", name)
			return nil
		}
		if h.Uid != 0 || h.Gid != 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s may be changed by others than root", name)
		}
		if entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		if h.PAXRecords["sha256"] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is another one in the image", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tops, err := os.ReadDir(filepath.Join(root, "out"))
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, top := range tops {
		folders = append(folders, top.Name())
	}
	if copied := d.copies(t); !slices.Equal(copied, folders) {
		t.Errorf("the last stage takes %q of what the first has made, which is %q", copied, folders)
	}
	if len(have) != len(want) {
		t.Errorf("the image has %d files and folders, the Dockerfile's %d", len(have), len(want))
	}

	config, err := m.image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	d.compare(t, config, m.args)
	if config.OS != "linux" || config.Architecture != "amd64" {
		t.Errorf("it is for %s on %s", config.OS, config.Architecture)
	}
}

// sameAsMake runs the command that make image builds the programs with, in the repository
// itself, and compares the result with the Dockerfile's programs, byte by byte.
func sameAsMake(t *testing.T, programs string, args map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", "image",
		"VERSION="+args["VERSION"], "REVISION="+args["REVISION"], "IMAGE_ARCH="+args["TARGETARCH"])
	cmd.Dir = repository
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make -n image: %v\n%s", err, out)
	}
	const folder = "bin/image/programs/"
	dir, ran := t.TempDir(), false
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "go build") || !strings.Contains(line, " "+folder+" ") {
			continue
		}
		build := exec.CommandContext(t.Context(), "sh", "-ec", strings.Replace(line, folder, dir+"/", 1))
		build.Dir, ran = repository, true
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s%v\n%s", line, err, out)
		}
	}
	if !ran {
		t.Fatalf("make image builds nothing:\n%s", out)
	}
	entries, err := os.ReadDir(programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		a, errA := os.ReadFile(filepath.Join(programs, entry.Name()))
		b, errB := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("make image builds another %s than the Dockerfile: %v", entry.Name(), err)
		}
	}
	if others, err := os.ReadDir(dir); err != nil || len(others) != len(entries) {
		t.Errorf("make image builds %d programs, the Dockerfile %d: %v", len(others), len(entries), err)
	}
}

// TestImageIsTheSameTwice: nothing in it tells when or where it was made.
func TestImageIsTheSameTwice(t *testing.T) {
	programs := t.TempDir()
	build := func(out string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", out,
			"./cmd/etcdcerts")
		cmd.Dir, cmd.Env = repository, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	build(filepath.Join(programs, "etcdcerts"))
	first := makeImage(t, programs)
	if err := os.Chtimes(filepath.Join(programs, "etcdcerts"), fixed(), fixed()); err != nil {
		t.Fatal(err)
	}
	second := makeImage(t, programs)
	for _, name := range []string{"licet.tar", "licet.cdx.json"} {
		a, errA := os.ReadFile(filepath.Join(first.dir, name))
		b, errB := os.ReadFile(filepath.Join(second.dir, name))
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is another one the second time: %v", name, err)
		}
	}
	components := readComponents(t, first.dir)
	if len(*components.Components) < 3 {
		t.Errorf("the list has %d components", len(*components.Components))
	}
}

// TestLayout: an OCI layout has an image for each processor, and refuses two folders for the same one.
func TestLayout(t *testing.T) {
	work := t.TempDir()
	source := filepath.Join(work, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"layout", "--out", filepath.Join(work, "image.tar")}
	for _, arch := range []string{"amd64", "arm64"} {
		folder := filepath.Join(work, arch)
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", filepath.Join(folder, "licet"),
			source)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		args = append(args, folder)
	}
	if err := run(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", args[2], "-C", work).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var processors []string
	index, err := layout.ImageIndexFromPath(work)
	for err == nil { // the index of the layout has one index, which has the images
		var manifest *v1.IndexManifest
		if manifest, err = index.IndexManifest(); err != nil {
			break
		}
		if first := manifest.Manifests[0]; first.MediaType.IsIndex() {
			index, err = index.ImageIndex(first.Digest)
			continue
		}
		for _, m := range manifest.Manifests {
			image, err := index.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil || config.Architecture != m.Platform.Architecture || m.Platform.OS != "linux" {
				t.Errorf("the image for %s says %v, %v", m.Platform, config, err)
			}
			processors = append(processors, m.Platform.Architecture)
		}
		break
	}
	if err != nil || !slices.Equal(processors, []string{"amd64", "arm64"}) {
		t.Errorf("images for %q, %v", processors, err)
	}
	if err := run(append(args, args[3]), io.Discard); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the same processor twice: %v", err)
	}
}

// TestComponents: the list names each module that a program was linked from, and what
// depends on what is in it.
func TestComponents(t *testing.T) {
	programs := filepath.Join(t.TempDir(), "programs")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", programs+"/",
		"./cmd/...")
	cmd.Dir, cmd.Env = repository, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	bom := readComponents(t, makeImage(t, programs).dir)
	if bom.SpecVersion != cdx.SpecVersion1_6 || bom.Metadata.Component.Version != "1.2.3" ||
		!strings.HasPrefix(bom.SerialNumber, "urn:uuid:") {
		t.Errorf("it is of %+v", bom.Metadata.Component)
	}
	refs := map[string]cdx.Component{bom.Metadata.Component.BOMRef: *bom.Metadata.Component}
	for _, c := range *bom.Components {
		if _, twice := refs[c.BOMRef]; twice {
			t.Errorf("%s is there twice", c.BOMRef)
		}
		refs[c.BOMRef] = c
	}
	for _, d := range *bom.Dependencies {
		for _, ref := range append(slices.Clone(*d.Dependencies), d.Ref) {
			if _, ok := refs[ref]; !ok {
				t.Errorf("%s depends on %s, which is not in the list", d.Ref, ref)
			}
		}
	}
	list, err := readPrograms(programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		sum := sha256.Sum256(p.bytes)
		c, ok := refs["program/linux/amd64/"+p.name]
		if !ok || (*c.Hashes)[0].Value != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not in the list, or another one", p.name)
		}
		for _, m := range p.info.Deps {
			if _, ok := refs["pkg:golang/"+m.Path+"@"+m.Version]; !ok {
				t.Errorf("%s of %s is not in the list", m.Path, p.name)
			}
		}
	}
	for _, want := range []string{"std", rootsModule, "github.com/valyala/fasthttp"} {
		if !slices.ContainsFunc(*bom.Components, func(c cdx.Component) bool { return c.Name == want }) {
			t.Errorf("%s is not in the list", want)
		}
	}
}

func readComponents(t *testing.T, dir string) *cdx.BOM {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "licet.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	bom := new(cdx.BOM)
	if err := cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	return bom
}

// TestRoots: the certificates are some hundred authorities, each of which signs.
func TestRoots(t *testing.T) {
	rest, err := roots()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA {
			t.Errorf("certificate %d: %v", count, err)
		}
		count++
	}
	if count < 80 {
		t.Errorf("%d authorities", count)
	}
}

// TestRefuses what would not run in the image.
func TestRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if err := run(args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
	dir := t.TempDir()
	f("image tar")
	f("are needed", "tar", "--programs", dir)
	f("there is no program", "tar", "--programs", dir, "--out", dir)
	f("-created", "tar", "--programs", dir, "--out", dir, "--created", "today")
	f("--image", "tar", "--programs", dir, "--out", dir, "--image", "licet:a+b")
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f("is no program of Go", "tar", "--programs", dir, "--out", dir)
	if err := os.Remove(filepath.Join(dir, "script")); err != nil {
		t.Fatal(err)
	}
	// It contains the paths of the machine that built it.
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath=false", "-o", filepath.Join(dir, "program"),
		source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	f("built with -trimpath=", "tar", "--programs", dir, "--out", dir)
}
