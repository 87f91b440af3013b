package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"licet/internal/fakestripe"
	"licet/licensing"
	"licet/payment"
	"licet/payment/stripe"
)

const (
	stripeTestKey = "sk_test_canary0123456789"
	stripeLiveKey = "rk_live_canary0123456789"
	stripeSecret  = "whsec_canary0123456789"
)

// secretFiles writes files that only this user can read, and returns their folder.
func secretFiles(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPaymentProviders: which provider each account has in each mode.
func TestPaymentProviders(t *testing.T) {
	t.Parallel()
	fake := fakestripe.New(1)
	defer fake.Close()
	const own = "sk_test_own0123456789"
	for _, key := range []string{stripeTestKey, stripeLiveKey, own} {
		fake.AddKey(key)
	}
	dir := secretFiles(t, map[string]string{
		"test.key": stripeTestKey + "\n", "live.key": stripeLiveKey, "own.key": own,
		"secrets": stripeSecret + "\n\n" + stripeSecret + "next\n",
		"payments.json": `{"accounts": {
			"acct_own": {"test": {"provider": "stripe", "key_file": "own.key", "webhook_secrets_file": "secrets",
				"suspend_on_dispute": true}},
			"acct_sandbox": {"test": {"provider": "sandbox"}}}}`,
	})
	s := newService(config{paymentsConfig: paymentsConfig{
		File: filepath.Join(dir, "payments.json"), StripeBase: fake.URL,
		StripeTest: stripeAccount{KeyFile: filepath.Join(dir, "test.key")},
		StripeLive: stripeAccount{KeyFile: filepath.Join(dir, "live.key"),
			WebhookFile: filepath.Join(dir, "secrets")},
	}}, zerolog.Nop())
	if err := s.usePayments(t.Context()); err != nil {
		t.Fatal(err)
	}
	of := func(account string, mode licensing.Mode) payment.Provider {
		return s.providers.Of(licensing.Owner{AccountID: account, Mode: mode})
	}
	if of("acct_sandbox", licensing.Test) != s.sandbox {
		t.Error("the file does not give an account the sandbox")
	}
	if of("acct_a", licensing.Test) != of("acct_b", licensing.Test) || of("acct_a", licensing.Test) ==
		of("acct_a", licensing.Live) || of("acct_own", licensing.Test) == of("acct_a", licensing.Test) ||
		of("acct_own", licensing.Live) != of("acct_a", licensing.Live) {
		t.Error("the providers are mixed up")
	}
	if !of("acct_own", licensing.Test).SuspendOnDispute() || of("acct_a", licensing.Test).SuspendOnDispute() {
		t.Error("suspend_on_dispute is mixed up")
	}
	err := s.accepts(licensing.Order{Owner: licensing.Owner{AccountID: "acct_a", Mode: licensing.Live},
		OrderPayment: licensing.OrderPayment{Amount: 10, Currency: "USD"}})
	if !errors.Is(err, &licensing.Error{Reason: licensing.ReasonInvalidField}) {
		t.Errorf("an order of 10 cents: %v", err)
	}
	none := newService(config{paymentsConfig: paymentsConfig{StripeBase: fake.URL}}, zerolog.Nop())
	if err := none.usePayments(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := none.accepts(licensing.Order{Owner: licensing.Owner{Mode: licensing.Live}}); !errors.Is(err,
		licensing.ErrPaymentNotConfigured) {
		t.Errorf("a live order without a provider: %v", err)
	}
}

// TestWrongPaymentSettings: a wrong setting fails at the start, says what to do, and does not show the secrets.
func TestWrongPaymentSettings(t *testing.T) {
	t.Parallel()
	fake := fakestripe.New(1)
	defer fake.Close()
	fake.AddKey(stripeLiveKey)
	dir := secretFiles(t, map[string]string{
		"test.key": stripeTestKey, "live.key": stripeLiveKey, "empty.key": "\n", "two.key": "a\nb\n",
		"secrets": stripeSecret, "three": strings.Repeat(stripeSecret+"\n", 3),
		"none":     "\n",
		"long.key": strings.Repeat("x", 10_000),
		"bad.json": `{"accounts": {"acct_a": {"live": {"provider": "stripe", "key": "x"}}}}`,
		"pay.json": `{"accounts": {"acct_a": {"live": {"provider": "paddle"}}}}`,
		"box.json": `{"accounts": {"acct_a": {"live": {"provider": "sandbox"}}}}`,
		"key.json": `{"accounts": {"acct_a": {"live": {"provider": "stripe"}}}}`,
		"ids.json": `{"accounts": {"acme": {"test": {"provider": "sandbox"}}}}`,
		"all.json": `{"accounts": {"": {"test": {"provider": "sandbox"}}}}`,
	})
	open := filepath.Join(dir, "open.key")
	if err := os.WriteFile(open, []byte(stripeLiveKey), 0o644); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		cfg  paymentsConfig
		want string
	}{
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("test.key")}}, "live mode needs a live key"},
		{paymentsConfig{StripeTest: stripeAccount{KeyFile: path("live.key")}}, "test mode needs a test key"},
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("none.key")}}, "no such file"},
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("empty.key")}}, "is empty"},
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("two.key")}}, "must be the only line"},
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("long.key")}}, "too long"},
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("live.key"), WebhookFile: path("three")}},
			"at most two"},
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("live.key"), WebhookFile: path("none")}},
			"none has no webhook secret"},
		{paymentsConfig{StripeLive: stripeAccount{KeyFile: path("live.key"), WebhookFile: path("live.key")}},
			"whsec_"},
		// A key that the fake does not know.
		{paymentsConfig{StripeTest: stripeAccount{KeyFile: path("test.key")}}, "copy a valid key"},
		{paymentsConfig{File: path("bad.json")}, "is not in the form"},
		{paymentsConfig{File: path("pay.json")}, `accounts.acct_a.live: provider is "paddle"`},
		{paymentsConfig{File: path("box.json")}, `provider is "sandbox"`},
		{paymentsConfig{File: path("key.json")}, "key_file is missing"},
		{paymentsConfig{File: path("ids.json")}, `accounts has the member "acme"`},
		{paymentsConfig{File: path("all.json")}, `accounts has the member ""`},
		{paymentsConfig{File: path("none.json")}, "no such file"},
	} {
		c.cfg.StripeBase = fake.URL
		err := newService(config{paymentsConfig: c.cfg}, zerolog.Nop()).usePayments(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary0123456789") {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
	if err := newService(config{paymentsConfig: paymentsConfig{StripeBase: fake.URL,
		StripeLive: stripeAccount{KeyFile: open}}}, zerolog.Nop()).usePayments(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "every user of this machine can read") {
		t.Errorf("a key that everybody can read: %v", err)
	}
	for _, c := range []paymentsConfig{
		{StripeBase: "http://stripe.example"},
		{StripeBase: stripe.DefaultBase, StripeLive: stripeAccount{WebhookFile: "x"}},
	} {
		if err := c.validate(); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

// TestStripeUnreachable: a node starts without Stripe, and says so.
func TestStripeUnreachable(t *testing.T) {
	t.Parallel()
	fake := fakestripe.New(1)
	fake.Close()
	dir := secretFiles(t, map[string]string{"live.key": stripeLiveKey})
	var log bytes.Buffer
	s := newService(config{paymentsConfig: paymentsConfig{StripeBase: fake.URL,
		StripeLive: stripeAccount{KeyFile: filepath.Join(dir, "live.key")}}}, zerolog.New(&log))
	if err := s.usePayments(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "could not be asked") || strings.Contains(log.String(), "canary") {
		t.Error(log.String())
	}
}

// TestKeysAreVerifiedTogether: a node asks Stripe about the keys of several accounts at the same time.
func TestKeysAreVerifiedTogether(t *testing.T) {
	t.Parallel()
	const accounts = 4
	var asked atomic.Int32
	all := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == accounts {
			close(all)
		}
		select { // no answer comes before the node has asked about all keys
		case <-all:
			_, _ = io.WriteString(w, `{"object":"list","data":[],"has_more":false}`)
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	var members []string
	for i := range accounts {
		members = append(members, fmt.Sprintf(`"acct_%d":{"test":{"provider":"stripe","key_file":"key"}}`, i))
	}
	dir := secretFiles(t, map[string]string{"key": stripeTestKey,
		"payments.json": `{"accounts": {` + strings.Join(members, ",") + `}}`})
	var log bytes.Buffer
	s := newService(config{paymentsConfig: paymentsConfig{
		StripeBase: slow.URL, File: filepath.Join(dir, "payments.json"),
	}}, zerolog.New(&log))
	if err := s.usePayments(t.Context()); err != nil || strings.Contains(log.String(), "could not be asked") {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// TestRefusedKeyEndsVerification: a shared key that Stripe refuses fails the start, however long Stripe takes for other
// keys. Without that key, the refused key of one account does not, and is in the log.
func TestRefusedKeyEndsVerification(t *testing.T) {
	t.Parallel()
	const wrong = stripeTestKey + "_wrong"
	asked := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != wrong && r.Header.Get("Authorization") != "Bearer "+wrong {
			close(asked)
			<-r.Context().Done() // no answer before the node hangs up
			return
		}
		<-asked
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided"}}`)
	}))
	defer slow.Close()
	dir := secretFiles(t, map[string]string{"key": stripeTestKey, "wrong": wrong,
		"payments.json": `{"accounts": {"acct_right": {"test": {"provider": "stripe", "key_file": "key"}}}}`,
		"refused.json":  `{"accounts": {"acct_wrong": {"test": {"provider": "stripe", "key_file": "wrong"}}}}`})
	var log bytes.Buffer
	s := newService(config{paymentsConfig: paymentsConfig{
		StripeBase: slow.URL, File: filepath.Join(dir, "payments.json"),
		StripeTest: stripeAccount{KeyFile: filepath.Join(dir, "wrong")},
	}}, zerolog.New(&log))
	err := s.usePayments(t.Context())
	if err == nil || !strings.Contains(err.Error(), "for test mode") || strings.Contains(err.Error(), "acct_") {
		t.Error(err)
	}
	if strings.Contains(log.String(), "could not be asked") { // as after verifyTimeout
		t.Error(log.String())
	}
	s.cfg.paymentsConfig = paymentsConfig{StripeBase: slow.URL, File: filepath.Join(dir, "refused.json")}
	if err := s.usePayments(t.Context()); err != nil || !strings.Contains(log.String(), "acct_wrong in test mode") {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// TestSecretsAreReadAgain: replaced files are used within a second. Unusable files change nothing.
func TestSecretsAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := secretFiles(t, map[string]string{"key": stripeTestKey, "webhook": stripeSecret})
	key, webhook := filepath.Join(dir, "key"), filepath.Join(dir, "webhook")
	s, err := loadStripeSecrets(key, webhook, false, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.checked = time.Time{}
		s.mu.Unlock()
	}
	write(webhook, stripeSecret+"\n"+stripeSecret+"next\n")
	if got := s.get(); len(got.Webhook) != 2 || got.Key != stripeTestKey {
		t.Errorf("%d secrets", len(got.Webhook))
	}
	write(webhook, "")
	if got := s.get(); len(got.Webhook) != 2 {
		t.Errorf("%d secrets after the file was emptied", len(got.Webhook))
	}
	write(webhook, stripeSecret)
	write(key, stripeLiveKey)
	if got := s.get(); got.Key != stripeTestKey {
		t.Error("a live key is used in test mode")
	}
	write(key, stripeTestKey+"2")
	if got := s.get(); got.Key != stripeTestKey+"2" {
		t.Error("the new key is not used")
	}
}

// TestConnectStripe: the command makes the endpoint and a file with its secret, once.
func TestConnectStripe(t *testing.T) {
	t.Parallel()
	fake := fakestripe.New(1)
	defer fake.Close()
	fake.AddKey(stripeTestKey)
	dir := secretFiles(t, map[string]string{"key": stripeTestKey, "live": stripeLiveKey})
	connect := func(args ...string) (output string, code int) {
		cmd := licetCommand(append([]string{"payments", "connect", "stripe", "--account-id", "acct_acme",
			"--public-url", "https://licenses.example.com/", "--stripe-api-base", fake.URL}, args...)...)
		text, _ := cmd.CombinedOutput()
		return string(text), cmd.ProcessState.ExitCode()
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	output, code := connect("--key-file", path("key"), "--webhook-secrets-file", path("webhook"))
	if code != 0 || !strings.Contains(output, "https://licenses.example.com/v1/callbacks/stripe/acct_acme/test") {
		t.Fatalf("%d %s", code, output)
	}
	secrets, err := readSecrets(path("webhook"))
	if err != nil || len(secrets) != 1 || !strings.HasPrefix(secrets[0], "whsec_") || strings.Contains(output,
		secrets[0]) {
		t.Errorf("%d secrets, %v", len(secrets), err)
	}
	if _, err := loadStripeSecrets(path("key"), path("webhook"), false, zerolog.Nop()); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--key-file", path("key"), "--webhook-secrets-file", path("webhook")}, "exists", exitFailed},
		{[]string{"--key-file", path("key"), "--webhook-secrets-file", path("2")}, "already", exitFailed},
		{[]string{"--key-file", path("live"), "--webhook-secrets-file", path("3")}, "401", exitFailed},
		{[]string{"--key-file", path("none"), "--webhook-secrets-file", path("4")}, "no such file", exitFailed},
		{[]string{"--key-file", path("key")}, "--webhook-secrets-file must name", exitUsage},
		{[]string{"--webhook-secrets-file", path("5")}, "--key-file must name", exitUsage},
	} {
		output, code := connect(c.args...)
		if code != c.code || !strings.Contains(output, c.want) || strings.Contains(output, "canary") {
			t.Errorf("%v: %d %s", c.args, code, output)
		}
	}
	if left, _ := filepath.Glob(path("[2-5]")); len(left) > 0 {
		t.Errorf("there are %v", left)
	}
}
