package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// copyRepository copies the tracked files of the repository into a folder.
func copyRepository(t *testing.T, to string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	cmd.Dir = repository
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(repository, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, but not yet committed
		}
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// build builds a release and returns its files.
func build(t *testing.T, source, platforms string) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	err := run([]string{"--source", source, "--out", out, "--version", "v1.2.3", "--revision", "0123abc",
		"--created", "2026-11-22T14:00:00+01:00", "--platforms", platforms})
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	check.Dir = out
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, text)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestReleaseIsTheSameTwice builds two copies of the repository in different folders and compares all bytes. With
// LICET_RELEASE=full it builds every platform, and the second copy without anything of Go's build cache. Otherwise it
// builds the platform whose programs other checks run: TestOtherPlatforms checks the types of the other platforms.
func TestReleaseIsTheSameTwice(t *testing.T) {
	platforms := "linux/amd64"
	full := os.Getenv("LICET_RELEASE") == "full"
	if full {
		platforms = allPlatforms
	}
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "a folder of another name")
	copyRepository(t, a)
	copyRepository(t, b)
	first := build(t, a, platforms)
	if full {
		t.Setenv("GOCACHE", t.TempDir())
	}
	second := build(t, b, platforms)
	if len(first) != len(second) {
		t.Errorf("%d and %d files", len(first), len(second))
	}
	for name, text := range first {
		if !bytes.Equal(text, second[name]) {
			t.Errorf("%s has other bytes the second time", name)
		}
	}
	want := []string{"SHA256SUMS", "licet-1.2.3.cdx.json", "licet-1.2.3.image.tar"}
	for name := range strings.SplitSeq(platforms, ",") {
		system, arch, _ := strings.Cut(name, "/")
		ending := ".tar.gz"
		if system == "windows" {
			ending = ".zip"
		}
		want = append(want, "licet-1.2.3-"+system+"-"+arch+ending)
		if system == "linux" {
			want = append(want, "licet_1.2.3_"+arch+".deb")
		}
		if list := string(first["licet-1.2.3.cdx.json"]); !strings.Contains(list, `"program/`+name+`/licet`) {
			t.Errorf("the SBOM lacks the program for %s", name)
		}
	}
	for _, name := range want {
		if len(first[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if len(first) != len(want) {
		t.Errorf("%d files, want %d", len(first), len(want))
	}
	runArchive(t, first["licet-1.2.3-linux-amd64.tar.gz"])
	layoutHas(t, first["licet-1.2.3.image.tar"], platforms)
}

// runArchive unpacks the archive for this machine and runs the program in it.
func runArchive(t *testing.T, archive []byte) {
	t.Helper()
	dir := t.TempDir()
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, inside := strings.CutPrefix(h.Name, "licet-1.2.3-linux-amd64/")
		if !inside {
			t.Errorf("%s is outside of the archive's folder", h.Name)
		}
		names = append(names, name)
		text, err := io.ReadAll(r)
		if err != nil || len(text) == 0 {
			t.Fatalf("%s: %d bytes, %v", h.Name, len(text), err)
		}
		if name == "licet" {
			if err := os.WriteFile(filepath.Join(dir, name), text, h.FileInfo().Mode()); err != nil {
				t.Fatal(err)
			}
		}
	}
	docs := func(name string) bool { return strings.HasPrefix(name, "docs/") }
	if len(names) == len(slices.DeleteFunc(slices.Clone(names), docs)) {
		t.Error("the archive has no docs")
	}
	want := []string{"licet", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md",
		"completions/licet.bash", "completions/_licet", "completions/licet.fish", "completions/licet.ps1"}
	if names = slices.DeleteFunc(names, docs); !slices.Equal(names, want) {
		t.Errorf("the archive has %q and docs, want %q", names, want)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "licet"), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "licet v1.2.3\nrevision 0123abc\n") {
		t.Errorf("licet version: %v\n%s", err, out)
	}
}

// layoutHas checks that an OCI layout names an image for each platform of Linux.
func layoutHas(t *testing.T, layout []byte, platforms string) {
	t.Helper()
	var all strings.Builder
	names := map[string]bool{}
	for r := tar.NewReader(bytes.NewReader(layout)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
		if h.Size < 1<<16 {
			if _, err := io.Copy(&all, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !names["oci-layout"] || !names["index.json"] {
		t.Errorf("the layout has %v", names)
	}
	for name := range strings.SplitSeq(platforms, ",") {
		system, arch, _ := strings.Cut(name, "/")
		named := strings.Contains(all.String(), `"platform":{"architecture":"`+arch+`","os":"linux"}`)
		if system == "linux" && !named {
			t.Errorf("no image for %s in the index", arch)
		}
	}
}

// TestContents checks the archive of Windows and the Debian package, whose program is a small file here: the program,
// the scripts, and the documentation with the pages that it links to.
func TestContents(t *testing.T) {
	dir, scripts := t.TempDir(), t.TempDir()
	for _, name := range []string{"licet", "licet.exe"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("MZ"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range completions() {
		if err := os.WriteFile(filepath.Join(scripts, c.file), []byte(c.shell), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := parse([]string{"--source", repository, "--out", t.TempDir(), "--version", "v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	documents := filepath.Join(t.TempDir(), "documents")
	if err := r.documents(documents); err != nil {
		t.Fatal(err)
	}
	if err := r.archive(platform{"windows", "amd64"}, dir, scripts, documents); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(r.name("-windows-amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if z.File[0].Name != "licet-1.2.3-windows-amd64/licet.exe" || z.File[0].Mode() != 0o755 {
		t.Errorf("the first file is %s %v", z.File[0].Name, z.File[0].Mode())
	}
	zipped, err := fs.Sub(z, "licet-1.2.3-windows-amd64")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range completions() {
		if _, err := fs.Stat(zipped, "completions/"+c.file); err != nil {
			t.Error(err)
		}
	}
	wantDocs(t, zipped)

	if err := r.deb(platform{"linux", "amd64"}, dir, scripts, documents); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--extract",
		filepath.Join(r.out, "licet_1.2.3_amd64.deb"), root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantDocs(t, os.DirFS(filepath.Join(root, "usr/share/doc/licet")))
}

// wantDocs checks that files have the documentation, and everything that it links to.
func wantDocs(t *testing.T, files fs.FS) {
	t.Helper()
	pages, links := 0, 0
	link := regexp.MustCompile(`(?:\]\(|(?:href|src|srcset)=")([^)"#\s]+)`)
	err := fs.WalkDir(files, ".", func(page string, entry fs.DirEntry, err error) error {
		if err != nil || path.Ext(page) != ".md" {
			return err
		}
		pages++
		text, err := fs.ReadFile(files, page)
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(match[1], ":") || match[1] == "…" {
				continue
			}
			links++
			if _, err := fs.Stat(files, path.Join(path.Dir(page), match[1])); err != nil {
				t.Errorf("%s links to %s, which is missing", page, match[1])
			}
		}
		return err
	})
	if err != nil || pages < 80 || links < 400 {
		t.Errorf("%d pages have %d links: %v", pages, links, err)
	}
}

// TestDebVersion compares versions as dpkg does.
func TestDebVersion(t *testing.T) {
	versions := []string{"dev", "f9cd9be-dirty", "v1.2.3-rc.1", "v1.2.3-rc.1-4-gf9cd9be", "v1.2.3-rc.2", "v1.2.3",
		"v1.2.3-4-gf9cd9be", "1.2.3-4-gf9cd9be-dirty", "v1.2.4"}
	for i, v := range versions[1:] {
		low, high := debVersion(versions[i]), debVersion(v)
		if err := exec.CommandContext(t.Context(), "dpkg", "--compare-versions", low, "lt", high).Run(); err != nil {
			t.Errorf("dpkg: %s is not below %s: %v", low, high, err)
		}
	}
}

// TestRefuses wrong arguments.
func TestRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
	f("--source and --out are needed")
	f("--created", "--source", ".", "--out", t.TempDir(), "--created", "today")
	f(`"plan9/amd64"`, "--source", ".", "--out", t.TempDir(), "--platforms", "plan9/amd64")
}
