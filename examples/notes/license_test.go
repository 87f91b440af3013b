package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/client"
	"licet/internal/servicetest"
)

var svc *servicetest.Service

func TestMain(m *testing.M) { os.Exit(servicetest.Run(m, &svc)) }

// shop returns a client with an API key of a new account that sells notes for two devices.
func shop(t *testing.T) *client.Client {
	t.Helper()
	key, err := svc.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	shop, err := client.New(svc.URL, key.Text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.CloseIdleConnections)
	devices := 2
	if _, err := shop.Products.Put(t.Context(), productID,
		client.ProductTerms{Name: "Notes", MaxDevices: &devices, SelfServiceDeactivation: true}); err != nil {
		t.Fatal(err)
	}
	return shop
}

func newLicense(t *testing.T, shop *client.Client) string {
	t.Helper()
	granted, err := shop.Licenses.Grant(t.Context(), client.Grant{ProductID: productID, Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	return granted[0].LicenseKey
}

// device returns the guard of a new device.
func device(t *testing.T, address string) *guard {
	t.Helper()
	service, err := client.New(address, "", client.RetryFor(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.CloseIdleConnections)
	return &guard{service: service, file: filepath.Join(t.TempDir(), "notes", "license.json"), now: time.Now}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q", err, want)
	}
}

func TestLicenseOfADevice(t *testing.T) {
	shop := shop(t)
	key := newLicense(t, shop)
	first, second, third := device(t, svc.URL), device(t, svc.URL), device(t, svc.URL)
	ctx := t.Context()
	if err := first.check(ctx); !errors.Is(err, errNotActivated) {
		t.Errorf("a start without activation: %v", err)
	}
	for range 2 { // the second activation takes no slot
		if err := first.activate(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.check(ctx); err != nil {
		t.Error(err)
	}
	if err := second.activate(ctx, key); err != nil {
		t.Error(err)
	}
	wantError(t, third.activate(ctx, key), "all devices of this license are in use")
	if err := first.deactivate(ctx); err != nil {
		t.Error(err)
	}
	if err := first.check(ctx); !errors.Is(err, errNotActivated) {
		t.Errorf("a start after the deactivation: %v", err)
	}
	if err := third.activate(ctx, key); err != nil {
		t.Error(err)
	}
	wantError(t, first.activate(ctx, "LIC-00000-00000-00000-00000-00000"), "does not exist")
	if _, err := shop.Licenses.Revoke(ctx, key, ""); err != nil {
		t.Fatal(err)
	}
	wantError(t, third.check(ctx), "license_revoked")
}

// TestGrace: without an answer the program starts for seven days.
func TestGrace(t *testing.T) {
	key := newLicense(t, shop(t))
	g := device(t, svc.URL)
	if err := g.activate(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.service, err = client.New("http://127.0.0.1:1", "", client.RetryFor(0)); err != nil {
		t.Fatal(err)
	}
	g.now = func() time.Time { return time.Now().Add(grace - time.Hour) }
	if err := g.check(t.Context()); err != nil {
		t.Errorf("within the grace: %v", err)
	}
	g.now = func() time.Time { return time.Now().Add(grace + time.Hour) }
	wantError(t, g.check(t.Context()), "once in 7 days")
	g.now = func() time.Time { return time.Now().Add(-grace - time.Hour) } // a clock set back brings no grace
	wantError(t, g.check(t.Context()), "once in 7 days")
}

// TestCommands runs the program's commands, with its settings in a directory of their own.
func TestCommands(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("LICET_URL", svc.URL)
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := run(ctx, args, &out)
		return out.String(), err
	}
	key := newLicense(t, shop(t))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"activate", key}, "notes is activated on this device\n"},
		{nil, "your notes: buy milk\n"},
		{[]string{"deactivate"}, "notes is deactivated on this device\n"},
	} {
		if out, err := run(c.args...); err != nil || out != c.want {
			t.Errorf("notes %s: %q, %v", strings.Join(c.args, " "), out, err)
		}
	}
	if _, err := run("help"); err == nil {
		t.Error("an unknown command is no error")
	}
}
