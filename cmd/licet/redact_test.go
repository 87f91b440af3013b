package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"licet/licensing"
)

// TestRedact forgets a buyer from the command line, of more orders than one request
// redacts.
func TestRedact(t *testing.T) {
	t.Parallel()
	s := startService(t)
	shop := s.addKey(t, licensing.Owner{AccountID: "acct_redact", Mode: licensing.Test})
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(shop.key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	redact := func(args ...string) outcome {
		t.Helper()
		return runLicet(t, append([]string{"redact", "--url", s.url, "--api-key-file", keyFile}, args...)...)
	}
	order := func(number int) string {
		amount := min(number, 1) // the first is paid
		return shop.want(t, 201, "POST", "/v1/orders", fmt.Sprintf(
			`{"product_id":"editor","amount":%d,"currency":"USD","buyer_email":"Ann@example.com","description":"for Ann"}`, amount)).Data.text("order_no")
	}
	const all = 205
	var orders []string
	for i := range all {
		orders = append(orders, order(i))
	}
	if got := redact("--buyer-email", "ann@example.com", "--yes"); got.code != exitOK ||
		got.stdout != "205 orders and 1 license redacted\n" || got.stderr != "" {
		t.Errorf("got %+v", got)
	}
	for _, number := range orders {
		if found := shop.want(t, 200, "GET", "/v1/orders/"+number, "").Data; found["buyer_email"] != nil ||
			found["description"] != nil {
			t.Errorf("the order is %v", found)
		}
	}
	order(1)
	if got := redact("--buyer-email", "ANN@example.com", "--output", "json"); got.code != exitOK ||
		got.stdout != `{"orders":1,"licenses":0,"complete":true}`+"\n" {
		t.Errorf("got %+v", got)
	}
	if got := redact("--buyer-email", "ann@example.com"); got.code != exitOK ||
		got.stdout != "0 orders and 0 licenses redacted\n" {
		t.Errorf("got %+v", got)
	}

	left := order(1)
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no address": {nil, exitUsage, "buyer-email"},
		"an empty address": {[]string{"--buyer-email", ""}, exitUsage,
			"--buyer-email must be a plain e-mail address"},
		"no e-mail address": {[]string{"--buyer-email", "ann"}, exitUsage,
			"--buyer-email must be a plain e-mail address"},
		"an argument": {[]string{"ann@example.com", "--buyer-email", "ann@example.com"}, exitUsage,
			"licet redact takes no argument"},
		"an unknown API key": {[]string{"--buyer-email", "ann@example.com", "--api-key-file", os.Args[0]},
			exitFailed, ""},
		"nothing at the URL": {[]string{"--buyer-email", "ann@example.com", "--url", "http://127.0.0.1:1"},
			exitFailed, "no service listens"},
		"another output format": {[]string{"--buyer-email", "ann@example.com", "--output", "csv"}, exitUsage,
			"--output"},
	} {
		if got := redact(c.args...); got.code != c.code || got.stdout != "" || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if found := shop.want(t, 200, "GET", "/v1/orders/"+left, "").Data; found["buyer_email"] == nil {
		t.Error("a command that failed has redacted an order")
	}
}
