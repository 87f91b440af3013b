package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/cmd/licet/internal/doctor"
	"licet/internal/etcdtest"
	"licet/internal/fakestripe"
	"licet/kv"
)

// doctorReport runs licet doctor, demands its exit code, and returns its findings.
func doctorReport(t *testing.T, exit int, args ...string) []doctor.Finding {
	t.Helper()
	got := runLicet(t, append([]string{"doctor", "--output", "json"}, args...)...)
	var report struct{ Findings []doctor.Finding }
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != exit {
		t.Fatalf("licet doctor %q: want exit code %d, got %+v, %v", args, exit, got, err)
	}
	for _, f := range report.Findings {
		if f.Check == "" || f.Found == "" || (f.Advice == "") != (f.Level == doctor.OK) {
			t.Errorf("licet doctor %q has the finding %+v", args, f)
		}
	}
	return report.Findings
}

// wantFinding demands a finding.
func wantFinding(t *testing.T, all []doctor.Finding, level doctor.Level, check, found string) {
	t.Helper()
	if !slices.ContainsFunc(all, func(f doctor.Finding) bool {
		return f.Level == level && f.Check == check && strings.Contains(f.Found, found)
	}) {
		t.Errorf("no %s of %q with %q among %+v", level, check, found, all)
	}
}

// emptyPlace leaves the test without a service: an empty working directory and no settings.
func emptyPlace(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"LICET_URL", "LICET_API_KEY", "LICET_ETCD_ENDPOINTS", "LICET_DATA_DIR"} {
		t.Setenv(name, "")
	}
}

func TestDoctorOfAService(t *testing.T) {
	p := shared(t)
	emptyPlace(t)
	all := doctorReport(t, exitFailed)
	wantFinding(t, all, doctor.Problem, "service", "nothing names a service or a store")
	t.Setenv("LICET_URL", p.url)
	wantFinding(t, doctorReport(t, exitOK), doctor.Warning, "API key", "there is no API key for "+p.url)
	t.Setenv("LICET_API_KEY", p.key)
	all = doctorReport(t, exitOK)
	wantFinding(t, all, doctor.OK, "service", "(from $LICET_URL)")
	for _, check := range []string{"environment", "service", "store space", "service clock", "service latency",
		"API key", "payments", "account budget", "webhooks"} {
		if !slices.ContainsFunc(all, func(f doctor.Finding) bool { return f.Check == check }) {
			t.Errorf("no finding of %q among %+v", check, all)
		}
	}
	t.Setenv("LICET_API_KEY", "lk_test_wrong")
	wantFinding(t, doctorReport(t, exitFailed), doctor.Problem, "API key", "refuses the API key from $LICET_API_KEY")
	wantFinding(t, doctorReport(t, exitFailed, "--url", "http://127.0.0.1:1"), doctor.Problem, "service", "refused")
	t.Setenv("LICET_SIGN", "true")
	wantFinding(t, doctorReport(t, exitFailed), doctor.Problem, "settings of the service", "signing needs the id")
	t.Setenv("LICET_SIGN", "")
	t.Setenv("LICET_LSITEN", ":80")
	wantFinding(t, doctorReport(t, exitFailed), doctor.Warning, "environment", "did you mean LICET_LISTEN?")
	// The etcd of the running service, and its data directory, which is in use.
	wantFinding(t, doctorReport(t, exitFailed, "--data-dir", p.dir), doctor.Problem, "store", "is in use")
	socket := "unix://" + filepath.Join(p.dir, "run", "etcd.sock")
	wantFinding(t, doctorReport(t, exitFailed, "--etcd-endpoints", socket), doctor.OK, "master key", "knows 1")
}

func TestDoctorOfACluster(t *testing.T) {
	emptyPlace(t)
	cluster := etcdtest.Start(t, 3)
	all := doctorReport(t, exitOK, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ","))
	for check, found := range map[string]string{"etcd members": "3 of 3 answer", "etcd alarms": "none",
		"etcd put": "median", "etcd get": "median",
		"etcd versions": ".", "etcd clock": "agrees", "etcd access": "guarded"} {
		wantFinding(t, all, doctor.OK, check, found)
	}
	for check, found := range map[string]string{"etcd quota": "small default", "master key": "knows no master key",
		"API keys": "no API key yet", "nodes": "no node is up", "backup": "there is no backup"} {
		wantFinding(t, all, doctor.Warning, check, found)
	}
	cluster.Members[0].Kill()
	wantFinding(t, doctorReport(t, exitFailed, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ",")),
		doctor.Problem, "etcd members", "does not answer")
	small := etcdtest.StartSmall(t, 1, 16<<20)
	etcdtest.NewBallast(t, small.Endpoints()[0]).FillFile(0.85)
	wantFinding(t, doctorReport(t, exitOK, "--etcd-endpoints", small.Endpoints()[0]), doctor.Warning, "etcd quota",
		"of its quota of 16 MiB")
}

// TestDoctorOfNodes checks two nodes of this version.
func TestDoctorOfNodes(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	for range 2 {
		startServe(t, "--etcd-endpoints", cluster.Endpoints()[0])
	}
	wantNodes(t, cluster, doctor.OK, readBuild().version+", as this licet")
}

// wantNodes awaits that two nodes of a cluster are registered, and demands a finding about their versions.
func wantNodes(t *testing.T, cluster *etcdtest.Cluster, level doctor.Level, found string) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		all := doctorReport(t, exitOK, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ","))
		up := slices.ContainsFunc(all, func(f doctor.Finding) bool {
			return f.Check == "nodes" && f.Found == "2 are up"
		})
		if up || time.Since(start) > 30*time.Second {
			wantFinding(t, all, level, "node versions", found)
			return
		}
	}
}

// TestDoctorOfADataDirectory checks the store of a stopped licet dev, and directories without one.
func TestDoctorOfADataDirectory(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	p.terminate(t)
	emptyPlace(t)
	all := doctorReport(t, exitOK, "--data-dir", dir)
	wantFinding(t, all, doctor.OK, "API keys", "1")
	wantFinding(t, all, doctor.OK, "etcd quota", "used")
	wantFinding(t, doctorReport(t, exitFailed, "--data-dir", t.TempDir()), doctor.Problem, "store", "there is no store")
}

// TestDoctorOfPayments checks a live account before and after its service has a key of Stripe.
func TestDoctorOfPayments(t *testing.T) {
	fake := fakestripe.New(1)
	defer fake.Close()
	fake.AddKey(stripeLiveKey)
	files := secretFiles(t, map[string]string{"stripe.key": stripeLiveKey})
	dir := t.TempDir()
	p := startProcess(t, dir)
	account := p.want(t, 200, "GET", "/v1/account", "").Data.text("account_id")
	p.terminate(t)
	live := createKey(t, []string{"--data-dir", dir}, "--account", account, "--mode", "live")
	emptyPlace(t)
	t.Setenv("LICET_API_KEY", live.APIKey)
	report := func(flags ...string) []doctor.Finding {
		p := startProcess(t, dir, flags...)
		defer p.terminate(t)
		return doctorReport(t, exitOK, "--url", p.url)
	}
	wantFinding(t, report(), doctor.Warning, "payments", "no payment provider charges the orders of this account")
	wantFinding(t, report("--stripe-api-base", fake.URL, "--stripe-live-key-file", filepath.Join(files, "stripe.key")),
		doctor.OK, "payments", "stripe charges the orders")
}

// TestDoctorOfSettings checks the settings of a node in the environment, which contradict each other or lack something.
func TestDoctorOfSettings(t *testing.T) {
	emptyPlace(t)
	ca := etcdtest.NewCA(t)
	files := ca.Issue(t, "node", 1) // for an hour
	t.Setenv("LICET_MASTER_KEY_FILE", "master.keys")
	t.Setenv("LICET_ETCD_ENDPOINTS", "127.0.0.1:1")
	t.Setenv("LICET_TLS_CERT", files.Cert)
	wantFinding(t, doctorReport(t, exitFailed), doctor.Problem, "settings of licet serve",
		"--tls-cert and --tls-key go together")
	t.Setenv("LICET_TLS_KEY", files.Key)
	all := doctorReport(t, exitFailed)
	wantFinding(t, all, doctor.Warning, "settings of licet serve", "no public URL")
	wantFinding(t, all, doctor.Warning, "certificate file", "expires at ")
	t.Setenv("LICET_DATA_DIR", "licet-data")
	all = doctorReport(t, exitFailed)
	wantFinding(t, all, doctor.Warning, "environment", "LICET_ETCD_ENDPOINTS and LICET_DATA_DIR are both set")
	wantFinding(t, all, doctor.Problem, "settings of the store", "two stores")
	t.Setenv("LICET_ORDER_LIFETIME", "soon")
	wantFinding(t, doctorReport(t, exitFailed), doctor.Problem, "environment", "LICET_ORDER_LIFETIME")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LICET_ETCD_CA", empty)
	t.Setenv("LICET_ORDER_LIFETIME", "")
	wantFinding(t, doctorReport(t, exitFailed), doctor.Problem, "certificate file", "has no certificate")
}
