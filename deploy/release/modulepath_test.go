package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestModulePath changes the path of the modules of a copy. Then every import of every module resolves, the test of the
// architecture, which knows the path, passes, and a program outside of the repository can import the client.
func TestModulePath(t *testing.T) {
	t.Parallel()
	const path = "git.example.com/team/licet"
	dir := filepath.Join(t.TempDir(), "copy")
	copyRepository(t, dir)
	if err := os.Chmod(filepath.Join(dir, "tools/module-path"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := func(in string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = in
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v in %s: %v\n%s", args, in, err, out)
		}
		return string(out)
	}
	refused := exec.CommandContext(t.Context(), "make", "module-path", "TO=licet")
	refused.Dir = dir
	if out, err := refused.CombinedOutput(); err == nil {
		t.Errorf("the path licet, which go get can't find, was accepted:\n%s", out)
	}
	command(dir, "make", "module-path", "TO="+path)
	for file := range strings.FieldsSeq(command(repository, "git", "ls-files", "*go.mod")) {
		module := filepath.Join(dir, filepath.Dir(file))
		if out := command(module, "go", "list", "-m"); !strings.HasPrefix(out, path) {
			t.Errorf("%s is of %s", file, out)
		}
		if command(module, "go", "list", "./...") != "" {
			command(module, "go", "list", "-deps", "-test", "./...")
		}
	}
	command(dir, "go", "test", "./internal/archtest")

	user := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.26\n\nrequire " + path + " v0.0.0\n\n" +
			"replace " + path + " => " + dir + "\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + path + "/client\"\n)\n\n" +
			"func main() { _, err := client.New(\"http://127.0.0.1:1\", \"\"); fmt.Println(err == nil) }\n",
	} {
		if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command(user, "go", "mod", "tidy")
	if out := command(user, "go", "run", "."); out != "true\n" {
		t.Errorf("the program printed %q", out)
	}
}
