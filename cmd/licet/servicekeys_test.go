package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestKeysThroughTheService does through the API what licet store keys does on a store.
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
	got := runLicet(t, "keys", "create", "--name", "child", "--scopes", "orders,keys:read", "--expires-at",
		"2040-01-01T00:00:00Z", "--require-signature", "--output", "json")
	if got.code != exitOK || got.stderr != "Keep the API key and its secret: licet can't print them again.\n" {
		t.Fatalf("%+v", got)
	}
	made := decode[map[string]any](t, got.stdout)
	id, _ := made["id"].(string)
	if made["name"] != "child" || made["require_signature"] != true ||
		made["expires_at"] != "2040-01-01T00:00:00.000Z" || !strings.HasPrefix(made["api_key"].(string), "lk_test_") {
		t.Errorf("made %v", made)
	}
	if text := must("keys", "get", id); !strings.Contains(text, "SCOPES                 orders,keys:read\n") {
		t.Errorf("the key is\n%s", text)
	}
	if text := must("keys", "list", "--limit", "1"); !strings.Contains(text, id) || strings.Count(text, "\n") != 2 {
		t.Errorf("listed\n%s", text)
	}
	if text := must("keys", "list", "--all", "--output", "json"); !strings.Contains(text, id) ||
		strings.Count(text, "\n") < 2 {
		t.Errorf("listed\n%s", text)
	}
	plain := decode[map[string]any](t,
		must("keys", "create", "--name", "plain", "--scopes", "orders", "--output", "json"))
	turned := decode[map[string]any](t, must("keys", "rotate", plain["id"].(string), "--overlap", "90s", "--output",
		"json"))
	if turned["api_key"] != nil || turned["api_secret"] == plain["api_secret"] ||
		turned["previous_secret_until"] == nil {
		t.Errorf("rotated to %v", turned)
	}
	if text := must("keys", "revoke", id); !strings.Contains(text, "revoked") {
		t.Errorf("revoked\n%s", text)
	}
	must("keys", "revoke", plain["id"].(string))
	if got := runLicet(t, "keys", "rotate", plain["id"].(string)); got.code != exitFailed ||
		!strings.Contains(got.stderr, "40407") {
		t.Errorf("%+v", got)
	}
	if got := runLicet(t, "keys", "create", "--name", "x", "--scopes", "all"); got.code != exitUsage ||
		!strings.Contains(got.stderr, "--scopes must be 1 to 32 of") {
		t.Errorf("%+v", got)
	}
}

// TestStoreOrService calls licet keys and licet store keys while the environment names a store, a service or both: the
// command decides, not the environment.
func TestStoreOrService(t *testing.T) {
	p := shared(t)
	store := "unix://" + filepath.Join(p.dir, "run", "etcd.sock")
	keyFile := filepath.Join(t.TempDir(), "key")
	writeText(t, keyFile, p.key)
	onStore, onService := []string{`"master_key_id"`}, []string{`"mode":"test"}`}
	account := p.want(t, 200, "GET", "/v1/keys", "").Data.list("keys")[0].text("account_id")
	acct := []string{"--account", account, "--mode", "test"}
	f := func(code int, words []string, environment []string, command string, args ...string) {
		t.Helper()
		for _, name := range []string{"LICET_URL", "LICET_API_KEY", "LICET_ETCD_ENDPOINTS", "LICET_DATA_DIR",
			"LICET_PROFILE"} {
			t.Setenv(name, "")
		}
		for _, pair := range environment {
			name, value, _ := strings.Cut(pair, "=")
			t.Setenv(name, value)
		}
		got := runLicet(t, append(strings.Fields(command), args...)...)
		for _, word := range words {
			if got.code != code || !strings.Contains(got.stdout+got.stderr, word) {
				t.Errorf("%s %v with %v: want exit code %d and %q, got %+v", command, args, environment, code, word,
					got)
			}
		}
	}
	const call, direct = "keys list -o json", "store keys list -o json"
	service := []string{"LICET_URL=" + p.url, "LICET_API_KEY=" + p.key}
	etcd := []string{"LICET_ETCD_ENDPOINTS=" + store}
	both := slices.Concat(service, etcd)
	f(exitOK, onService, service, call)
	f(exitOK, onStore, etcd, direct, acct...)
	f(exitOK, onStore, service, direct, append(acct, "--etcd-endpoints", store)...)
	f(exitOK, onService, etcd, call, "--url", p.url, "--api-key-file", keyFile)
	f(exitOK, onService, both, call)
	f(exitOK, onStore, both, direct, acct...)
	f(exitOK, onService, both, call, "--url", p.url)
	f(exitOK, onStore, both, direct, append(acct, "--etcd-endpoints", store)...)
	f(exitUsage, []string{"unknown flag: --etcd-endpoints"}, nil, call, "--url", p.url, "--etcd-endpoints", store)
	f(exitUsage, []string{"unknown flag: --url"}, nil, direct,
		append(acct, "--etcd-endpoints", store, "--url", p.url)...)
	f(exitUsage, []string{"no service: ", "--url"}, nil, call)
	f(exitUsage, []string{"no service: ", "--url"}, etcd, call)
	f(exitUsage, []string{"no store: set --etcd-endpoints"}, service, direct, acct...)
	f(exitUsage, []string{"unknown flag: --account"}, service, call, acct...)
	f(exitUsage, []string{"unknown flag: --master-key-file"}, service, call, "--master-key-file", "x")
	f(exitUsage, []string{"unknown flag: --limit"}, etcd, direct, append(acct, "--limit", "5")...)
	f(exitUsage, []string{`there is no profile "x"`}, nil, call, "--profile", "x")
	f(exitUsage, []string{`there is no profile "x"`}, []string{"LICET_DATA_DIR=x", "LICET_PROFILE=x"}, call)
	// The profile in use comes last.
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, pair := range both {
		name, _, _ := strings.Cut(pair, "=")
		t.Setenv(name, "")
	}
	env := filepath.Join(p.dir, envFile)
	if got := runLicet(t, "profile", "set", "dev", "--from-env", env); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	f(exitOK, onService, nil, call)
	f(exitOK, onService, etcd, call)
	f(exitOK, onStore, etcd, direct, acct...)
}

// TestKeysListIsTheSame lists the API keys of an account through a service and on its store.
func TestKeysListIsTheSame(t *testing.T) {
	p := shared(t)
	account := p.want(t, 200, "GET", "/v1/keys", "").Data.list("keys")[0].text("account_id")
	t.Setenv("LICET_URL", p.url)
	t.Setenv("LICET_API_KEY", p.key)
	runLicet(t, "keys", "create", "--name", "shop", "--scopes", "orders,licenses:read", "--require-signature")
	onStore := []string{"store", "keys", "list", "--account", account, "--mode", "test", "--etcd-endpoints", p.socket()}
	// Another test may use or create a key in between.
	waitFor(t, func() bool {
		called, direct := runLicet(t, "keys", "list", "--all"), runLicet(t, onStore...)
		if called.code != exitOK || direct.code != exitOK || !strings.Contains(called.stdout, "REQUIRE SIGNATURE") {
			t.Fatalf("%+v\n%+v", called, direct)
		}
		return called.stdout == direct.stdout
	})
	waitFor(t, func() bool {
		called := decode[map[string]any](t, runLicet(t, "keys", "list", "--limit", "100", "-o", "json").stdout)
		direct := decode[map[string]any](t, runLicet(t, append(onStore, "-o", "json")...).stdout)
		for _, key := range direct["keys"].([]any) {
			if key := key.(map[string]any); key["master_key_id"] == "" {
				t.Fatalf("no master key in %v", key)
			}
			delete(key.(map[string]any), "master_key_id")
		}
		return reflect.DeepEqual(called, direct)
	})
	empty := append([]string{"store", "keys", "list", "--account", "acct_empty", "--mode", "test"}, onStore[7:]...)
	if got := runLicet(t, empty...); got.stdout != "" ||
		!strings.HasPrefix(got.stderr, "no keys yet: licet store keys create") {
		t.Errorf("an account without API keys: %+v", got)
	}
}

// TestSourcedEnvironment sources dev.env as the README says, after which the
// commands know the service.
func TestSourcedEnvironment(t *testing.T) {
	needTools(t, "sh")
	p := shared(t)
	out := pasteIn(t, p.dir, "sh",
		`. ./dev.env; RUN_TEST_BINARY_AS_LICET=1 GORACE=atexit_sleep_ms=0 "`+licetCommand().Path+`" products list --output json`)
	if !strings.HasPrefix(out, `{"products":[`) {
		t.Errorf("it came to %s", out)
	}
}

func TestFlagsThatAreNeeded(t *testing.T) {
	for problem, line := range map[string]string{
		"licet orders create needs --currency":                       "orders create --product-id a",
		"licet orders create needs --product-id and --currency":      "orders create --price 4",
		"licet orders create needs --price or --amount":              "orders create --product-id a --currency USD",
		"licet licenses renew needs --expires-at or --extend":        "licenses renew LIC-1",
		"--all and --limit exclude each other: set only one of them": "licenses list --all --limit 5",
		`unknown command "make"`:                                     "orders make",

		"licet licenses update needs --max-devices, --metadata, --entitlements, --buyer-email or " +
			"--customer-reference": "licenses update LIC-1",
	} {
		if got := runLicet(t, strings.Fields(line)...); got.code != exitUsage ||
			!strings.Contains(got.stderr, problem) {
			t.Errorf("%s: want exit code 2 and %q, got %+v", line, problem, got)
		}
	}
}
