package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/loadtest/rig"
)

const root = ".." // of the scripts, seen from here

// TestEveryScenario compares scenarios.json, the scripts and the README.
func TestEveryScenario(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "scenarios.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(root, "scenarios", "*.js"))
	if err != nil || len(scripts) != len(all) {
		t.Errorf("%d scripts and %d scenarios, %v", len(scripts), len(all), err)
	}
	for name := range all {
		s, err := loadScenario(root, name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := &config{name: name, scenario: s, slack: 1, accounts: 1, impatience: time.Second}
		if err := cfg.fillIn(); err != nil {
			t.Error(name, err)
		}
		if err := cfg.validate(); err != nil {
			t.Error(name, err)
		}
		script, err := os.ReadFile(filepath.Join(root, "scenarios", name+".js"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(script), "new Scenario('"+name+"'") {
			t.Errorf("%s.js takes the settings of another scenario", name)
		}
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("the README does not tell of %s", name)
		}
	}
}

// TestScriptsAndProgramAgree compares what the scripts and this program
// can't share.
func TestScriptsAndProgramAgree(t *testing.T) {
	for file, want := range map[string]string{
		"lib/mixed.js":            "'" + seedDevice(0) + "'",
		"scenarios/reactivate.js": seedDevice(2),
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not have %s", file, want)
		}
	}
}

func TestGroupSize(t *testing.T) {
	g := &group{Count: 10, PerArrival: 0.5}
	if got := g.size(3, 5*time.Second); got != 18 {
		t.Errorf("got %d licenses, want 10 and half of 15 arrivals, rounded up", got)
	}
}

func TestUsage(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		var stderr strings.Builder
		if code := program().Command(t.Context(), args, &stderr, &stderr); code != rig.ExitUsage ||
			!strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
	t.Chdir(filepath.Join(root, ".."))
	f("there is no scenario", "--scenario", "none")
	f("there are etcd-leader-loss, ")
	f("is for the scenario webhooks", "--scenario", "mixed", "--kills", "2")
	f("is for the scenario webhooks", "--scenario", "webhooks", "--accounts", "2")
	f("--nodes is 1: it must", "--scenario", "webhooks", "--nodes", "1")
	f("--members is 9: it must", "--scenario", "webhooks", "--members", "9")
	f("--kills is 51: it must be from 0 to 50", "--scenario", "webhooks", "--rate", "20", "--duration", "10s",
		"--kills", "51")
	f("--failures-each is -1: it must", "--scenario", "webhooks", "--failures-each", "-1")
	f("--impatience is 0s: it must", "--scenario", "webhooks", "--impatience", "0s")
	f("needs 3 nodes", "--scenario", "node-loss", "--nodes", "2")
	f("whole seconds", "--scenario", "mixed", "--duration", "1500ms")
	f("unexpected argument", "mixed")
	t.Setenv("LICET_API_KEY", "")
	f("LICET_API_KEY", "--scenario", "mixed", "--target", "http://127.0.0.1:1")
	var stderr strings.Builder
	if code := program().Command(t.Context(), []string{"--help"}, &stderr, &stderr); code != rig.ExitOK ||
		!strings.Contains(stderr.String(), "--scenario") {
		t.Errorf("--help: exit code %d, %s", code, &stderr)
	}
}
