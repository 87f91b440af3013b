package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// profileFile is where a user's profiles are.
func (u *user) profileFile() string { return filepath.Join(u.dir, "licet", "profiles.json") }

func TestProfiles(t *testing.T) {
	t.Parallel()
	known := newUser(t)
	u := newStranger(t)
	u.refuses(true, []string{"no service: start licet dev", ". licet-data/dev.env", "set --url",
		"licet profile set --help"}, "orders", "list")
	if text := u.must("profile", "list"); text != "" {
		t.Errorf("no profiles are\n%s", text)
	}

	env := filepath.Join(t.TempDir(), "dev.env")
	text := "LICET_URL=" + known.env["LICET_URL"] + "\nLICET_API_KEY=" + known.env["LICET_API_KEY"] +
		"\nexport LICET_API_KEY_ID=\"" + known.env["LICET_API_KEY_ID"] +
		"\"\nLICET_API_SECRET=" + known.env["LICET_API_SECRET"] + "\nexport LICET_URL LICET_API_KEY\n"
	if err := os.WriteFile(env, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := u.run("profile", "set", "dev", "--from-env", env, "--sign"); got.err != nil || got.stdout != "" ||
		!strings.Contains(got.stderr, `saved the profile "dev" in `+u.profileFile()) {
		t.Fatalf("%+v", got)
	}
	for _, path := range []string{filepath.Dir(u.profileFile()), u.profileFile()} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	u.must("orders", "list") // signed

	u.stdin = strings.NewReader("lk_test_other\nlks_test_other\n")
	if got := u.run("profile", "set", "other", "--url", "https://licenses.example.com", "--api-key-id",
		"key_other"); got.err != nil || !strings.Contains(got.stderr, `the profile in use is "dev"`) {
		t.Fatalf("%+v", got)
	}
	listed := u.run("profile", "list")
	want := "NAME   IN USE  URL                           API KEY    API KEY ID"
	if listed.err != nil || !strings.HasPrefix(listed.stdout, want) || strings.Contains(listed.stdout, "lk_test_o") ||
		strings.Contains(listed.stdout, "lks_") {
		t.Errorf("listed\n%s", listed.stdout)
	}
	if text := u.must("profile", "list", "--output", "json"); !json.Valid([]byte(text)) ||
		strings.Contains(text, known.env["LICET_API_KEY"]) {
		t.Errorf("listed\n%s", text)
	}
	u.must("profile", "use", "other")
	u.must("orders", "list", "--profile", "dev")
	u.refuses(true, []string{`there is no profile "third"`}, "orders", "list", "--profile", "third")
	u.must("profile", "remove", "other")
	u.refuses(true, []string{"no service: start licet dev"}, "orders", "list")
	u.refuses(true, []string{`no profile "other"`}, "profile", "use", "other")
	u.must("profile", "use", "dev")
	u.must("orders", "list")

	// Others must not be able to read it.
	if err := os.Chmod(u.profileFile(), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"orders list", "profile list", "profile use dev"} {
		u.refuses(false, []string{"other users can read it", "chmod 600"}, strings.Fields(line)...)
	}
	if err := os.Chmod(u.profileFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.profileFile(), []byte(`{"profiles":{"dev":{"api_key":"lk_secret"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := u.run("profile", "list"); got.err == nil || !strings.Contains(got.err.Error(), "is damaged") ||
		strings.Contains(got.err.Error(), "lk_secret") {
		t.Errorf("%+v", got)
	}
}

func TestProfilesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := func(stdin, problem, line string) {
		t.Helper()
		u := newStranger(t)
		u.stdin = strings.NewReader(stdin)
		u.refuses(true, []string{problem}, strings.Fields(line)...)
		if _, err := os.Stat(u.profileFile()); err == nil {
			t.Errorf("%s: something was kept", line)
		}
	}
	const there = " --url https://licenses.example.com"
	f("lk_test_1", "no service: set --url", "profile set a")
	f("lk_test_1", "write 1 to 63", "profile set ../a"+there)
	f("", "must start with lk_test_", "profile set a"+there)
	f("secret", "must start with lk_test_", "profile set a"+there)
	f("lk_test_1\nlk_test_1", "must start with lks_test_", "profile set a"+there)
	f("lk_test_1\nlks_test_1", "--api-key-id", "profile set a"+there)
	f("lk_test_1", "signing needs the API secret", "profile set a --sign"+there)
	f("lk_test_1", "must be a URL such as https://", "profile set a --url licenses.example.com")
	u := newStranger(t)
	u.refuses(false, []string{"--from-env: open /none"}, "profile", "set", "a", "--from-env", "/none")
}

// TestWhichService is the table of what wins.
func TestWhichService(t *testing.T) {
	t.Parallel()
	u := newStranger(t)
	for _, name := range []string{"one", "two"} {
		u.stdin = strings.NewReader("lk_test_" + name + "\nlks_test_" + name + "\n")
		u.must("profile", "set", name, "--url", "http://"+name, "--api-key-id", "key_"+name)
	}
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte("lk_test_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(line, env, want string) {
		t.Helper()
		u.env = map[string]string{}
		for _, pair := range strings.Fields(env) {
			name, value, _ := strings.Cut(pair, "=")
			u.env["LICET_"+name] = value
		}
		var s Service
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.AddFlags(fs)
		if err := fs.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		target, err := u.setup.find(&s, fs)
		got := strings.TrimPrefix(target.url, "http://") + " " + strings.TrimPrefix(target.apiKey,
			"lk_test_") + " " + strings.TrimPrefix(target.secret, "lks_test_")
		if target.sign {
			got += " signed"
		}
		if err != nil {
			got = err.Error()
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s with %s: %q, want %q", line, env, got, want)
		}
	}
	const env = "URL=http://env API_KEY=lk_test_env API_KEY_ID=key_env API_SECRET=lks_test_env"
	f("", "", "one one one")
	f("--profile two", "", "two two two")
	f("", "PROFILE=two", "two two two")
	f("", env, "env env env")
	f("", env+" PROFILE=two", "env env env")
	f("--profile two", env, "two two two")
	f("--profile two --url http://flag", env, "flag two two")
	f("--url http://flag", env, "flag env env")
	f("--url http://flag", "", "flag") // no profile's key goes elsewhere by itself
	f("--url http://flag", "PROFILE=two", "flag")
	f("--url http://flag --api-key-file "+keyFile, "", "flag file")
	f("--api-key-file "+keyFile, env, "env file") // the secret is another key's
	f("", env+" API_KEY_FILE=/none", "env env env")
	f("", "URL=http://env API_KEY_FILE="+keyFile, "env file")
	f("", "URL=http://env", "env")
	f("", "API_KEY=lk_test_env", "env") // of no service: the profile's is another's
	f("--sign", "", "one one one signed")
	f("", env+" SIGN=true", "env env env signed")
	f("--sign=false", env+" SIGN=1", "env env env")
	f("", env+" SIGN=perhaps", `environment variable LICET_SIGN is "perhaps": write true or false`)
	f("--api-key-file /none", "", "--api-key-file: open /none: no such file or directory")
	f("", "PROFILE=three", `$LICET_PROFILE: there is no profile "three"; see licet profile list and licet profile set`)
}

// TestNoDirectoryForSettings has a user without a home.
func TestNoDirectoryForSettings(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.setup.ConfigDir = func() (string, error) { return "", os.ErrNotExist }
	u.must("orders", "list")
	u.stdin = strings.NewReader("lk_test_1")
	u.refuses(false, []string{"profiles: "}, "profile", "set", "a", "--url", "http://a")
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	u := newStranger(t)
	u.stdin = strings.NewReader("lk_test_1")
	u.must("profile", "set", "shop", "--url", "http://a")
	for line, want := range map[string]string{
		"orders list --output ":              "table\njson\n",
		"orders list --status ":              "unpaid\npaid\n",
		"licenses list --status ":            "not_activated\n",
		"licenses validate a b --mode ":      "test\nlive\n",
		"products put a --validity-from ":    "issue\nactivation\n",
		"orders list --profile ":             "shop\n",
		"profile use ":                       "shop\n",
		"licenses ":                          "revoke\tRevoke licenses for good\n",
		"licenses activate --device-name= a": "",
	} {
		args := append([]string{"__complete"}, strings.Split(line, " ")...)
		if text := u.must(args...); !strings.Contains(text, want) {
			t.Errorf("%q is completed by\n%s", line, text)
		}
	}
}
