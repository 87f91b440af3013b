package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notRun has the blocks of the page that need what no test here has: the first words, and the reason.
var notRun = map[string]string{
	"make release ":                "the test calls the program of this target",
	"podman load ":                 "no container engine; layoutHas and deploy/image check the layout",
	"make image ":                  "no container engine; deploy/image has the tests of the image",
	"tar -xzf licet-1.2.3-darwin-": "no macOS; TestInstallPageFiles",
	"sudo xattr ":                  "no macOS",
	"Unblock-File ":                "no Windows; TestInstallPageFiles",
	"$path = ":                     "no Windows",
	". $HOME\\licet\\":             "no Windows; TestInstallPageFiles",
	"$env:Path += ":                "no Windows",
	"license_key=":                 "serve runs this block after licet dev",
	"docker exec ":                 "serve runs this block in the directory of docker run",
	"docker build ":                "no container engine; deploy/image compares the Dockerfile with the image",
}

// runInstallPage runs the commands of docs/guides/install.md, as written, in a machine with the files of a release.
// Of docker run it runs what the container would run.
func runInstallPage(t *testing.T, m *machine) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs/guides/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := commandBlocks(string(text))
	first, inContainer := "", ""
	for _, block := range blocks {
		if strings.HasPrefix(block, "license_key=") {
			first = block
		}
		if strings.HasPrefix(block, "docker exec ") {
			inContainer = strings.ReplaceAll(block, "docker exec licet ", "")
		}
	}
	ran := 0
	for _, block := range blocks {
		reason := ""
		for words, why := range notRun {
			if strings.HasPrefix(block, words) {
				reason = why
			}
		}
		if reason != "" {
			continue
		}
		ran++
		before, command, container := strings.Cut(strings.ReplaceAll(block, "\\\n", ""), "licet:dev ")
		switch {
		case container && strings.HasPrefix(before, "docker run "):
			if !strings.Contains(before, " --workdir /data ") || strings.Contains(command, "--data-dir") {
				t.Errorf("docker exec finds no licet-data after %s", block)
			}
			m.serve("licet "+strings.TrimSpace(command), inContainer, "\nAPI KEY ")
		case strings.HasPrefix(block, "sha256sum "):
			if out := m.shell(block); strings.Count(out, ": OK\n") != 2 {
				t.Errorf("%s prints\n%s", block, out)
			}
		case strings.HasPrefix(block, "source "):
			if out := m.shell(block + "complete -p licet\n"); !strings.Contains(out, "_licet licet\n") {
				t.Errorf("%s completes by %q", block, out)
			}
		default:
			install, dev := strings.CutSuffix(block, "licet dev\n")
			if !dev {
				t.Errorf("no test runs this block of docs/guides/install.md:\n%s", block)
				continue
			}
			m.run("rm -f /usr/local/bin/licet") // of the block before
			m.shell(install)
			m.serve("licet dev", first, "\nDEVICE ID laptop-1\n")
		}
	}
	if ran != 5 {
		t.Errorf("%d blocks were run", ran)
	}
}

// TestInstallPageFiles checks that the archives of the page, and the files in them, are those of a release.
func TestInstallPageFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs/guides/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for name := range strings.SplitSeq(allPlatforms, ",") {
		system, arch, _ := strings.Cut(name, "/")
		p := platform{system, arch}
		folder := "licet-1.2.3-" + p.String()
		known[folder], known[folder+"/"+program(p)] = true, true
		known[folder+map[bool]string{false: ".tar.gz", true: ".zip"}[system == "windows"]] = true
		for _, c := range completions() {
			known[folder+"/completions/"+c.file] = true
		}
	}
	names := regexp.MustCompile(`licet-1\.2\.3-[a-z]+-[a-z0-9]+[a-z1./\\]*`).FindAllString(string(text), -1)
	for _, name := range names {
		if name = strings.TrimRight(strings.ReplaceAll(name, `\`, "/"), "."); !known[name] {
			t.Errorf("a release has no %s", name)
		}
	}
	if len(names) < 10 {
		t.Errorf("the page names %q only", names)
	}
}

// commandBlocks returns the indented blocks of a page.
func commandBlocks(page string) (blocks []string) {
	var block strings.Builder
	for line := range strings.Lines(page + "\n") {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			block.WriteString(command)
		} else if block.Len() > 0 {
			blocks = append(blocks, block.String())
			block.Reset()
		}
	}
	return blocks
}

// shell runs commands in the folder of the release, and fails the test if one fails.
func (m *machine) shell(commands string) string {
	m.t.Helper()
	script := "cd /packages; set -e; command -v sudo >/dev/null || sudo() { \"$@\"; }\n" + commands
	out, err := m.command("bash -c '" + strings.ReplaceAll(script, "'", `'\''`) + "'")
	if err != nil {
		m.t.Errorf("%s: %v\n%s", commands, err, out)
	}
	return out
}

// serve runs a development server in a network of its own until the server is ready, and then commands in the same
// directory. The commands print the text want, in a table of any width.
func (m *machine) serve(command, then, want string) {
	m.t.Helper()
	out := m.shell("unshare --net bash -ec 'ip link set lo up; cd $(mktemp -d)\n" + command + " >log 2>&1 & pid=$!\n" +
		"until grep --quiet --no-messages \"^Ctrl-C stops the service\" log; do\n" +
		"kill -0 $pid 2>&1 || { cat log; exit 1; }; sleep 0.1; done\n" +
		"curl --silent --fail http://127.0.0.1:8080/readyz\n" + then + "kill $pid; wait $pid || true; echo stopped'\n")
	folded := regexp.MustCompile(" +").ReplaceAllString(out, " ")
	if !strings.Contains(folded, want) || !strings.HasSuffix(out, "stopped\n") {
		m.t.Errorf("%s, then %s, print\n%s", command, then, out)
	}
}
