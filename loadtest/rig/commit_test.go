package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildCommit builds a small program with the name of the service's, as it was
// before it was changed.
func TestBuildCommit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("it needs git")
	}
	repository := t.TempDir()
	t.Chdir(repository)
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	put("go.mod", "module licet\n")
	put("cmd/licet/main.go", "package main\n\nfunc main() { print(\"before\") }\n")
	git("add", ".")
	git("commit", "--quiet", "--message", "first")
	put("cmd/licet/main.go", "package main\n\nfunc main() { print(\"after\") }\n")
	git("commit", "--quiet", "--all", "--message", "second")

	t.Chdir(filepath.Join(repository, "cmd")) // from anywhere in it
	binary, err := BuildCommit(t.Context(), t.TempDir(), "HEAD~1", "")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), binary).CombinedOutput(); err != nil || string(out) != "before" {
		t.Errorf("it says %q, %v", out, err)
	}
	for _, commit := range []string{"nonsense", "--output=x"} {
		if _, err := BuildCommit(t.Context(), t.TempDir(), commit, ""); err == nil || !strings.Contains(err.Error(), commit) {
			t.Errorf("commit %s: %v", commit, err)
		}
	}
}
