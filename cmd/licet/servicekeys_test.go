package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKeysThroughTheService does with the API what licet keys does on a store.
func TestKeysThroughTheService(t *testing.T) {
	p := shared(t)
	t.Setenv("LICET_URL", p.url)
	t.Setenv("LICET_API_KEY", p.key)
	must := func(args ...string) string {
		t.Helper()
		got := runLicet(t, args...)
		if got.code != exitOK {
			t.Fatalf("%v: %+v", args, got)
		}
		return got.stdout
	}
	got := runLicet(t, "keys", "create", "--name", "child", "--scopes", "orders,keys:read", "--expires-at", "2040-01-01T00:00:00Z", "--require-signature", "--output", "json")
	if got.code != exitOK || got.stderr != "the key and its secret are not shown again\n" {
		t.Fatalf("%+v", got)
	}
	made := decode[map[string]any](t, got.stdout)
	id, _ := made["id"].(string)
	if made["name"] != "child" || made["require_signature"] != true || made["expires_at"] != "2040-01-01T00:00:00.000Z" || !strings.HasPrefix(made["api_key"].(string), "lk_test_") {
		t.Errorf("made %v", made)
	}
	if text := must("keys", "get", id); !strings.Contains(text, "SCOPES                 orders,keys:read\n") {
		t.Errorf("the key is\n%s", text)
	}
	if text := must("keys", "list", "--limit", "1"); !strings.Contains(text, id) || strings.Count(text, "\n") != 2 {
		t.Errorf("listed\n%s", text)
	}
	if text := must("keys", "list", "--all", "--output", "json"); !strings.Contains(text, id) || strings.Count(text, "\n") < 2 {
		t.Errorf("listed\n%s", text)
	}
	turned := decode[map[string]any](t, must("keys", "rotate", id, "--overlap", "90s", "--output", "json"))
	if turned["api_key"] != nil || turned["api_secret"] == made["api_secret"] || turned["previous_secret_until"] == nil {
		t.Errorf("rotated to %v", turned)
	}
	if text := must("keys", "revoke", id); !strings.Contains(text, "revoked") {
		t.Errorf("revoked\n%s", text)
	}
	if got := runLicet(t, "keys", "rotate", id); got.code != exitFailed || !strings.Contains(got.stderr, "40407") {
		t.Errorf("%+v", got)
	}
	if got := runLicet(t, "keys", "create", "--name", "x", "--scopes", "all"); got.code != exitUsage || !strings.Contains(got.stderr, "--scopes must be 1 to 32 of") {
		t.Errorf("%+v", got)
	}
}

// TestWhereKeysAre is the table of what a command line and the environment mean.
func TestWhereKeysAre(t *testing.T) {
	p := shared(t)
	store := "unix://" + filepath.Join(p.dir, "run", "etcd.sock")
	keyFile := filepath.Join(t.TempDir(), "key")
	writeText(t, keyFile, p.key)
	onStore, onService := []string{"MASTER KEY"}, []string{"REQUIRE SIGNATURE"}
	account := p.want(t, 200, "GET", "/v1/keys", "").Data.list("keys")[0].text("account_id")
	acct := []string{"--account", account, "--mode", "test"}
	f := func(code int, words []string, environment []string, args ...string) {
		t.Helper()
		for _, name := range []string{"LICET_URL", "LICET_API_KEY", "LICET_ETCD_ENDPOINTS", "LICET_DATA_DIR", "LICET_PROFILE"} {
			t.Setenv(name, "")
		}
		for _, pair := range environment {
			name, value, _ := strings.Cut(pair, "=")
			t.Setenv(name, value)
		}
		got := runLicet(t, append([]string{"keys", "list"}, args...)...)
		for _, word := range words {
			if got.code != code || !strings.Contains(got.stdout+got.stderr, word) {
				t.Errorf("%v with %v: want exit code %d and %q, got %+v", args, environment, code, word, got)
			}
		}
	}
	service := []string{"LICET_URL=" + p.url, "LICET_API_KEY=" + p.key}
	etcd := []string{"LICET_ETCD_ENDPOINTS=" + store}
	both := slices.Concat(service, etcd)
	f(exitOK, onService, service)
	f(exitOK, onStore, etcd, acct...)
	f(exitOK, onStore, service, append(acct, "--etcd-endpoints", store)...)
	f(exitOK, onService, etcd, "--url", p.url, "--api-key-file", keyFile)
	f(exitOK, onService, both, "--url", p.url)
	f(exitOK, onStore, both, append(acct, "--etcd-endpoints", store)...)
	f(exitUsage, []string{"the environment names a store", "and a service", "--url or --profile"}, both)
	f(exitUsage, []string{"the environment names a store"}, []string{"LICET_DATA_DIR=x", "LICET_PROFILE=x"})
	f(exitUsage, []string{"names a store and a service: which one?"}, nil, append(acct, "--etcd-endpoints", store, "--url", p.url)...)
	f(exitUsage, []string{"which API keys?", "--url", "--etcd-endpoints must name"}, nil)
	f(exitUsage, []string{"--account is for a store"}, service, acct...)
	f(exitUsage, []string{"--master-key-file is for a store"}, service, "--master-key-file", "x")
	f(exitUsage, []string{"--limit is for a service"}, etcd, append(acct, "--limit", "5")...)
	f(exitUsage, []string{`"x", which there is not`}, nil, "--profile", "x")
	// The profile in use is the last that is asked.
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, pair := range both {
		name, _, _ := strings.Cut(pair, "=")
		t.Setenv(name, "")
	}
	env := filepath.Join(p.dir, envFile)
	if got := runLicet(t, "profile", "set", "dev", "--from-env", env); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	f(exitOK, onService, nil)
	f(exitOK, onStore, etcd, acct...)
}

// TestSourcedEnvironment sources dev.env as the README says, after which the
// commands know the service.
func TestSourcedEnvironment(t *testing.T) {
	needTools(t, "sh")
	p := shared(t)
	out := pasteIn(t, p.dir, "sh", `. ./dev.env; RUN_TEST_BINARY_AS_LICET=1 GORACE=atexit_sleep_ms=0 "`+licetCommand().Path+`" products list --output json`)
	if !strings.HasPrefix(out, `{"products":[`) {
		t.Errorf("it came to %s", out)
	}
}

func TestFlagsThatAreNeeded(t *testing.T) {
	for problem, line := range map[string]string{
		`"amount", "currency" not set`: "orders create --product-id a",
		"[expires-at extend]":          "licenses renew LIC-1",
		"[max-devices metadata]":       "licenses update LIC-1",
		"[limit all]":                  "licenses list --all --limit 5",
		`unknown command "make"`:       "orders make",
	} {
		if got := runLicet(t, strings.Fields(line)...); got.code != exitUsage || !strings.Contains(got.stderr, problem) {
			t.Errorf("%s: want exit code 2 and %q, got %+v", line, problem, got)
		}
	}
}
