package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"licet/client"
	"licet/internal/servicetest"
)

var svc *servicetest.Service

// TestMain runs the tests, or, in a process that a test has started, the program.
func TestMain(m *testing.M) {
	if os.Getenv("LICET_ACCOUNT") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(servicetest.Run(m, &svc))
}

// TestWithoutNetwork activates the program once, and then starts it in a network namespace that has no network.
func TestWithoutNetwork(t *testing.T) {
	owner := servicetest.NewAccount()
	issued, err := svc.Key(owner)
	if err != nil {
		t.Fatal(err)
	}
	shop, err := client.New(svc.URL, issued.Text)
	if err != nil {
		t.Fatal(err)
	}
	defer shop.CloseIdleConnections()
	if _, err := shop.Products.Put(t.Context(), "notes", client.ProductTerms{Name: "Notes",
		SelfServiceDeactivation: true, Entitlements: map[string]any{"edition": "pro"}}); err != nil {
		t.Fatal(err)
	}
	granted, err := shop.Licenses.Grant(t.Context(), client.Grant{ProductID: "notes", Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := shop.Receipts.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	run := func(isolated bool, want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+home, "LICET_URL="+svc.URL, "LICET_ROOT="+keys.Root,
			"LICET_ACCOUNT="+owner.AccountID)
		if isolated {
			root := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			group := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
				UidMappings: root, GidMappings: group}
		}
		if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("%v, isolated %v: %s (%v), want %q", args, isolated, out, err, want)
		}
	}
	run(false, "no license: not_activated")
	run(false, "activated", "activate", granted[0].LicenseKey)
	run(false, `the program starts, with {"edition":"pro"}`)
	run(true, `the program starts, with {"edition":"pro"}`)
	run(true, "dial tcp", "deactivate") // there is no network indeed
	run(false, "deactivated", "deactivate")
	run(true, "no license: not_activated")
}
