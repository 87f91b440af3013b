package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"licet/internal/servicetest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// svc is what all tests call that need no other: a real one.
var svc *servicetest.Service

func TestMain(m *testing.M) { os.Exit(servicetest.Run(m, &svc)) }

// user runs commands, with an environment and a directory for settings of its own.
type user struct {
	t     *testing.T
	ctx   context.Context
	env   map[string]string
	dir   string
	stdin io.Reader
	setup Setup

	started bool // the last command got past its flags and arguments; a command that does not fails with a usage error
}

// newUser makes one whose environment names the service, with an API key of an
// account of its own.
func newUser(t *testing.T, scopes ...string) *user {
	t.Helper()
	key, err := svc.Key(servicetest.NewAccount(), scopes...)
	if err != nil {
		t.Fatal(err)
	}
	u := newStranger(t)
	u.env["LICET_URL"], u.env["LICET_API_KEY"] = svc.URL, key.Text
	u.env["LICET_API_KEY_ID"], u.env["LICET_API_SECRET"] = key.Key.ID, key.Secret
	return u
}

// newStranger makes one who knows no service.
func newStranger(t *testing.T) *user {
	u := &user{t: t, ctx: t.Context(), env: map[string]string{}, dir: t.TempDir(), stdin: strings.NewReader("")}
	u.setup = Setup{
		Version:   "test",
		Lookup:    func(name string) (string, bool) { value, found := u.env[name]; return value, found },
		ConfigDir: func() (string, error) { return u.dir, nil },
	}
	return u
}

// root is the command line with the commands of this package.
func (u *user) root() *cobra.Command {
	root := &cobra.Command{Use: "licet", SilenceErrors: true, SilenceUsage: true}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := CheckFlags(cmd)
		u.started = err == nil
		return err
	}
	root.AddCommand(Commands(u.setup)...)
	return root
}

// outcome is how a command ended.
type outcome struct {
	stdout, stderr string
	err            error
}

func (u *user) run(args ...string) outcome {
	u.t.Helper()
	var stdout, stderr bytes.Buffer
	err := u.runInto(&stdout, &stderr, args...)
	return outcome{stdout.String(), stderr.String(), err}
}

func (u *user) runInto(stdout, stderr io.Writer, args ...string) error {
	root := u.root()
	root.SetArgs(args)
	root.SetIn(u.stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(u.ctx)
}

// must demands that a command works, and returns its output.
func (u *user) must(args ...string) string {
	u.t.Helper()
	got := u.run(args...)
	if got.err != nil {
		u.t.Fatalf("licet %q: %v\n%s", args, got.err, got.stderr)
	}
	return got.stdout
}

// asJSON runs a command with --output json and reads its one line.
func (u *user) asJSON(args ...string) map[string]any {
	u.t.Helper()
	text := u.must(append(args, "--output", "json")...)
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil || strings.Count(text, "\n") != 1 {
		u.t.Fatalf("licet %q printed %q", args, text)
	}
	return o
}

// refuses demands that a command fails, with words in its message.
func (u *user) refuses(usage bool, words []string, args ...string) {
	u.t.Helper()
	u.started = false
	got := u.run(args...)
	var bad UsageError
	if got.err == nil || (!u.started || errors.As(got.err, &bad)) != usage || got.stdout != "" {
		u.t.Fatalf("licet %q: %v (a usage error: %v), it printed %q", args, got.err, !usage, got.stdout)
	}
	for _, word := range words {
		if !strings.Contains(got.err.Error(), word) {
			u.t.Errorf("licet %q says %q, want %q", args, got.err, word)
		}
	}
}

// wantGolden compares a text with a file.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
