package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

func fixed() time.Time { return time.Unix(1, 0) }

// dockerfile is what BuildKit's own parser reads in the Dockerfile.
type dockerfile struct {
	build, last instructions.Stage
	runs        []string
}

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	file, err := os.Open(filepath.Join(repository, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	tree, err := parser.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Warnings) > 0 {
		t.Errorf("warnings: %v", tree.Warnings)
	}
	stages, _, err := instructions.Parse(tree.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != 2 || stages[1].BaseName != "scratch" {
		t.Fatalf("%d stages", len(stages))
	}
	d := dockerfile{build: stages[0], last: stages[1]}
	for _, command := range d.build.Commands {
		if run, ok := command.(*instructions.RunCommand); ok {
			d.runs = append(d.runs, strings.Join(run.CmdLine, " "))
		}
	}
	if len(d.runs) != 3 {
		t.Fatalf("the build stage runs %q", d.runs)
	}
	if want, have := "golang:"+goVersion(t)+"-", d.build.BaseName; !strings.HasPrefix(have, want) {
		t.Errorf("it builds in %s, and go.mod wants %s", have, want)
	}
	return d
}

// goVersion returns the version of Go in go.mod.
func goVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if version, ok := strings.CutPrefix(line, "go "); ok {
			return strings.TrimSpace(version)
		}
	}
	t.Fatal("go.mod names no version of Go")
	return ""
}

// compare compares the last stage's settings with the image's.
func (d dockerfile) compare(t *testing.T, config *v1.ConfigFile, args map[string]string) {
	t.Helper()
	var env []string
	for name, value := range args {
		env = append(env, name+"="+value)
	}
	word := func(text string) string {
		out, _, err := shell.NewLex('\\').ProcessWord(text, shell.EnvsFromSlice(env))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	c, labels := config.Config, map[string]string{}
	same := func(what string, have, want []string) {
		t.Helper()
		if !slices.Equal(have, want) {
			t.Errorf("%s: the Dockerfile has %q, the image %q", what, have, want)
		}
	}
	seen := map[string]bool{}
	for _, command := range d.last.Commands {
		seen[strings.ToLower(command.Name())] = true
		switch command := command.(type) {
		case *instructions.LabelCommand:
			for _, l := range command.Labels {
				labels[word(l.Key)] = word(l.Value)
			}
		case *instructions.UserCommand:
			same("USER", []string{command.User}, []string{c.User})
		case *instructions.WorkdirCommand:
			same("WORKDIR", []string{command.Path}, []string{c.WorkingDir})
		case *instructions.EntrypointCommand:
			same("ENTRYPOINT", command.CmdLine, c.Entrypoint)
			if command.PrependShell {
				t.Error("ENTRYPOINT is for a shell, and there is none")
			}
		case *instructions.CmdCommand:
			same("CMD", command.CmdLine, c.Cmd)
			if command.PrependShell {
				t.Error("CMD is for a shell, and there is none")
			}
		case *instructions.EnvCommand:
			same("ENV", []string{command.Env[0].Key + "=" + command.Env[0].Value}, c.Env)
		case *instructions.ExposeCommand:
			for _, port := range command.Ports {
				if _, ok := c.ExposedPorts[port+"/tcp"]; !ok || len(c.ExposedPorts) != len(command.Ports) {
					t.Errorf("EXPOSE %v, and the image %v", command.Ports, c.ExposedPorts)
				}
			}
		}
	}
	for _, name := range []string{"label", "user", "workdir", "entrypoint", "cmd", "env", "expose", "copy"} {
		if !seen[name] {
			t.Errorf("the last stage has no %s", strings.ToUpper(name))
		}
	}
	if len(labels) != len(c.Labels) {
		t.Errorf("%d labels, the image has %d", len(labels), len(c.Labels))
	}
	for name, value := range c.Labels {
		if labels[name] != value {
			t.Errorf("LABEL %s: the Dockerfile has %q, the image %q", name, labels[name], value)
		}
	}
}

// copies lists the folders below / that the last stage takes from the first one's /out, each
// as it is and as root's.
func (d dockerfile) copies(t *testing.T) []string {
	t.Helper()
	var folders []string
	for _, command := range d.last.Commands {
		c, ok := command.(*instructions.CopyCommand)
		if !ok {
			continue
		}
		folder := strings.Trim(c.DestPath, "/")
		if c.From != d.build.Name || c.Chown != "" || c.Chmod != "" ||
			!slices.Equal(c.SourcePaths, []string{"/out/" + folder + "/"}) {
			t.Errorf("%s: it is to copy /out/%s/ as it is", c, folder)
		}
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	return folders
}

// copyContext copies what .dockerignore lets into a build, by the rules of Docker's own
// library for it.
func copyContext(t *testing.T, to string) {
	t.Helper()
	file, err := os.Open(filepath.Join(repository, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	// Files that a working copy may contain, at its top or elsewhere.
	for _, name := range []string{
		"master.keys", "cmd/licet/master.keys", "deploy/compose/master.keys", "store.db", "kv/store.db",
		"licet-data/dev-key.json", "cmd/licet/licet-data/dev-key.json", "bin/licet", ".git/config",
		"node/node_test.go", "handlers/testdata/x.json",
		"docs/guides/backup.md",
	} {
		if out, err := ignored.MatchesOrParentMatches(name); err != nil || !out {
			t.Errorf("%s would get into a build: %v", name, err)
		}
	}
	count := 0
	err = filepath.WalkDir(repository, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, name)
		if err != nil || relative == "." {
			return err
		}
		out, err := ignored.MatchesOrParentMatches(relative)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (relative == ".git" || relative == "bin" || relative == "licet-data"):
			if !out {
				t.Errorf("%s gets into a build", relative)
			}
			return fs.SkipDir
		case entry.IsDir() || out:
			return nil
		}
		extensions := []string{".go", ".mod", ".sum", ".html", ".css", ".txt", ".tmpl", ".js", ".ico"}
		document := strings.HasPrefix(relative, "docs/reference/openapi.") || // handlers serves both
			relative == "handlers/docs/errors.json"
		if ext := path.Ext(name); !document && !slices.Contains(extensions, ext) {
			t.Errorf("%s gets into a build: what for?", relative)
		}
		count++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		copied := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return err
		}
		return os.WriteFile(copied, text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 100 {
		t.Errorf("only %d files get into a build", count)
	}
}
