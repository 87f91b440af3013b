package doctor

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/client"
	"licet/kv/survey"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// healthy returns the facts of a healthy cluster of three.
func healthy() *survey.Facts {
	f := &survey.Facts{
		Secured: true,
		Put:     []time.Duration{time.Millisecond, 2 * time.Millisecond, 90 * time.Millisecond},
		Get:     []time.Duration{time.Millisecond},
		Content: survey.Content{APIKeys: 2, Masters: 1, Nodes: []string{"1.2.3", "1.2.3"}, Backup: now.Add(-time.Hour)},
	}
	for id := range uint64(3) {
		f.Members = append(f.Members, survey.Member{
			Endpoint: "https://etcd-" + string('0'+rune(id)) + ".example.com:2379", ID: id + 1, Cluster: 1, Version: "3.6.14",
			Supported: true, HasLeader: true, Size: 1 << 30, InUse: 1 << 30, Quota: 8 << 30,
			Clock: survey.Clock{Sent: now, Received: now, Date: now},
		})
	}
	return f
}

// reportOf returns the findings about a healthy cluster after a change.
func reportOf(change func(*survey.Facts)) *Report {
	facts := healthy()
	change(facts)
	var r Report
	r.Etcd(facts, false, now)
	r.Store(facts.Content, false, now)
	r.Versions(facts.Content.Nodes, "1.2.3")
	return &r
}

// TestEtcdAndStore changes one fact at a time: exactly one finding names the fact, and says what to do.
func TestEtcdAndStore(t *testing.T) {
	if r := reportOf(func(*survey.Facts) {}); r.Count(OK) != len(r.Findings) || len(r.Findings) < 10 {
		t.Errorf("a healthy cluster has the findings %+v", r.Findings)
	}
	expires := func(in time.Duration) func(*survey.Facts) {
		return func(f *survey.Facts) {
			f.Members[1].Certificates = []*x509.Certificate{{NotBefore: now.Add(-time.Hour), NotAfter: now.Add(in)}}
		}
	}
	for _, test := range []struct {
		level  Level
		found  string
		change func(*survey.Facts)
	}{
		{Problem, "etcd-2.example.com:2379 does not answer: gone", func(f *survey.Facts) {
			f.Members[2] = survey.Member{Endpoint: f.Members[2].Endpoint, Err: errors.New("gone")}
		}},
		{Problem, "the certificate of https://etcd-2.example.com:2379 expired at 2030-01-02 03:03Z", func(f *survey.Facts) {
			f.Members[2] = survey.Member{Endpoint: f.Members[2].Endpoint, Err: errors.New("gone"),
				Untrusted: &tls.CertificateVerificationError{Err: errors.New("expired"),
					UnverifiedCertificates: []*x509.Certificate{{NotAfter: now.Add(-time.Minute)}}}}
		}},
		{Problem, "knows no leader", func(f *survey.Facts) { f.Members[0].HasLeader = false }},
		{Warning, "is a learner", func(f *survey.Facts) { f.Members[0].Learner = true }},
		{Warning, "are the same member", func(f *survey.Facts) { f.Members[1].ID = f.Members[0].ID }},
		{Problem, "lead to 2 clusters", func(f *survey.Facts) { f.Members[1].Cluster = 2 }},
		{Warning, "no endpoint leads to the members etcd-3, etcd-4", func(f *survey.Facts) {
			f.Unnamed = []string{"etcd-3", "etcd-4"}
		}},
		{Warning, "has one member", func(f *survey.Facts) { f.Members = f.Members[:1] }},
		{Warning, "has 2 members: it survives no more failures than with 1", func(f *survey.Facts) {
			f.Members = f.Members[:2]
		}},
		{Warning, "2 versions", func(f *survey.Facts) { f.Members[2].Version = "3.7.1" }},
		{Problem, "has the version 3.5.0", func(f *survey.Facts) {
			for i := range f.Members {
				f.Members[i].Version, f.Members[i].Supported = "3.5.0", i > 0
			}
		}},
		{Problem, "the alarm NOSPACE", func(f *survey.Facts) {
			f.Members[0].Alarms, f.Members[1].Alarms = []string{"NOSPACE"}, []string{"NOSPACE"}
		}},
		{Problem, "the alarm CORRUPT", func(f *survey.Facts) { f.Members[0].Alarms = []string{"CORRUPT"} }},
		{Warning, "uses 85 % of its quota of 8192 MiB", func(f *survey.Facts) {
			f.Members[0].Size = 85 * f.Members[0].Quota / 100
			f.Members[0].InUse = f.Members[0].Size
		}},
		{Problem, "uses 96 % of its quota", func(f *survey.Facts) {
			f.Members[0].Size = 961 * f.Members[0].Quota / 1000
			f.Members[0].InUse = f.Members[0].Size
		}},
		{Warning, "has 900 MiB free in a file of 1024 MiB", func(f *survey.Facts) { f.Members[0].InUse -= 900 << 20 }},
		{Warning, "the quota is 2048 MiB", func(f *survey.Facts) { f.Members[0].Quota = 2 << 30 }},
		{Warning, "slow: 60ms median", func(f *survey.Facts) { f.Put = []time.Duration{60 * time.Millisecond} }},
		{Problem, "slow: 2s median", func(f *survey.Facts) { f.Put = []time.Duration{2 * time.Second} }},
		{Problem, "failed: no space", func(f *survey.Facts) { f.PutErr = errors.New("no space") }},
		{Warning, "slow: 30ms median", func(f *survey.Facts) { f.Get = []time.Duration{30 * time.Millisecond} }},
		{Warning, "is 9s ahead of that", func(f *survey.Facts) { f.Members[1].Clock.Date = now.Add(9 * time.Second) }},
		{Warning, "is 9s behind that", func(f *survey.Facts) { f.Members[1].Clock.Date = now.Add(-10 * time.Second) }},
		{Problem, "expired at 2030-01-02 03:03Z", expires(-time.Minute)},
		{Warning, "in 29 days", expires(29*24*time.Hour + time.Hour)},
		{Problem, "starts to be valid at 2030-01-02 04:04Z", func(f *survey.Facts) {
			f.Members[0].Certificates = []*x509.Certificate{{NotBefore: now.Add(time.Hour),
				NotAfter: now.Add(2 * time.Hour)}}
		}},
		{Warning, "is without TLS", func(f *survey.Facts) { f.Members[2].Endpoint = "http://10.0.0.1:2379" }},
		{Warning, "demands no users", func(f *survey.Facts) { f.Secured = false }},
		{Warning, "is unknown: refused", func(f *survey.Facts) { f.UsersErr = errors.New("refused") }},
		{Problem, "unreadable", func(f *survey.Facts) { f.Content.Err = errors.New("unreadable") }},
		{Warning, "no master key", func(f *survey.Facts) { f.Content.Masters = 0 }},
		{Warning, "no API key yet", func(f *survey.Facts) { f.Content.APIKeys = 0 }},
		{Warning, "no node is up", func(f *survey.Facts) { f.Content.Nodes = nil }},
		{Warning, "one node is up", func(f *survey.Facts) { f.Content.Nodes = f.Content.Nodes[:1] }},
		{Warning, "the nodes have 2 versions: 1 × 1.2.3, 1 × 1.2.4",
			func(f *survey.Facts) { f.Content.Nodes = []string{"1.2.4", "1.2.3"} }},
		{Warning, "the nodes have 2 versions: 1 × 1.2.3, 2 × of an unknown version",
			func(f *survey.Facts) { f.Content.Nodes = []string{"", "1.2.3", ""} }},
		{Warning, "the nodes are 1.2.4, and this licet is 1.2.3",
			func(f *survey.Facts) { f.Content.Nodes = []string{"1.2.4", "1.2.4"} }},
		{Warning, "there is no backup", func(f *survey.Facts) { f.Content.Backup = time.Time{} }},
		{Warning, "last backup is 27h0m0s old", func(f *survey.Facts) { f.Content.Backup = now.Add(-27 * time.Hour) }},
	} {
		wantOne(t, reportOf(test.change), test.level, test.found)
	}
}

// wantOne demands that a report has one finding that is not OK.
func wantOne(t *testing.T, r *Report, level Level, found string) {
	t.Helper()
	bad := slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Level == OK })
	if len(bad) != 1 || bad[0].Level != level || !strings.Contains(bad[0].Found, found) || bad[0].Advice == "" ||
		bad[0].Check == "" {
		t.Errorf("want one %s with %q, got %+v", level, found, bad)
		return
	}
	// Users who have only the program can't open a page of the docs.
	advice, page, _ := strings.Cut(bad[0].Advice, "docs/")
	if page != "" && !strings.Contains(advice, "licet ") && !strings.Contains(advice, "etcd") &&
		!strings.HasPrefix(advice, "use three members") && !strings.HasPrefix(advice, "finish the upgrade") {
		t.Errorf("the advice names a page and no command: %s", bad[0].Advice)
	}
}

func TestEnvironment(t *testing.T) {
	known := []string{"LICET_LISTEN", "LICET_URL", "LICET_PROFILE", "LICET_API_KEY", "LICET_API_KEY_FILE",
		"LICET_PUBLIC_URL", "LICET_SIGN", "LICET_ETCD_ENDPOINTS", "LICET_DATA_DIR"}
	reportOf := func(environ ...string) *Report {
		var r Report
		r.Environment(environ, known)
		return &r
	}
	for _, fine := range [][]string{nil, {"LICET_URL=a", "LICET_API_KEY=b"}, {"LICET_PROFILE=", "LICET_URL=a"},
		{"LICET_SERVICE_HOST=10.0.0.1", "LICET_PORT_8080_TCP=tcp://10.0.0.1:8080", "LICET_PORT=tcp://10.0.0.1:8080"},
		{"LICET_URL=https://a/", "LICET_PUBLIC_URL=https://a", "LICET_SIGN=true"}} {
		if r := reportOf(fine...); r.Count(OK) != 1 || len(r.Findings) != 1 {
			t.Errorf("%q: %+v", fine, r.Findings)
		}
	}
	for found, environ := range map[string][]string{
		"no command reads LICET_LSITEN; did you mean LICET_LISTEN?": {"LICET_LSITEN=:80"},
		"LICET_API_KEY and LICET_API_KEY_FILE are both set":         {"LICET_API_KEY=a", "LICET_API_KEY_FILE=b"},
		"LICET_URL and LICET_PROFILE are both set":                  {"LICET_URL=a", "LICET_PROFILE=b"},
		"LICET_ETCD_ENDPOINTS and LICET_DATA_DIR are both set":      {"LICET_ETCD_ENDPOINTS=a", "LICET_DATA_DIR=b"},
		"LICET_URL is http://b:80":                                  {"LICET_URL=http://b:80", "LICET_PUBLIC_URL=https://a", "LICET_SIGN=1"},
	} {
		wantOne(t, reportOf(environ...), Warning, found)
	}
}

func TestNode(t *testing.T) {
	complete := Node{PublicURL: "https://licenses.example.com", MetricsListen: ":9090", TLSCertFile: "tls.crt"}
	reportOf := func(change func(*Node)) *Report {
		n := complete
		change(&n)
		var r Report
		r.Node(n)
		return &r
	}
	if r := reportOf(func(n *Node) { n.TLSCertFile, n.TrustedProxies = "", []string{"10.0.0.0/8"} }); r.Count(OK) != 1 {
		t.Errorf("complete settings: %+v", r.Findings)
	}
	wantOne(t, reportOf(func(n *Node) { n.PublicURL = "" }), Warning, "no public URL")
	wantOne(t, reportOf(func(n *Node) { n.PublicURL = "http://licenses.example.com" }), Warning, "without TLS")
	wantOne(t, reportOf(func(n *Node) { n.MetricsListen = "" }), Warning, "no alert can fire")
	wantOne(t, reportOf(func(n *Node) { n.TLSCertFile = "" }), Warning, "neither a TLS certificate nor a trusted proxy")
}

func TestWebhooks(t *testing.T) {
	var r Report
	r.webhooks([]client.Webhook{{ID: "we_1", Status: "enabled"}, {ID: "we_2", URL: "https://a", Status: "disabled"}})
	wantOne(t, &r, Warning, "we_2 to https://a is disabled")
}

// TestOutput writes a report in both forms.
func TestOutput(t *testing.T) {
	var r Report
	r.ok("a", "fine")
	r.add(Problem, "longer", "repair it", "broken")
	var out bytes.Buffer
	if err := r.Text(&out, false); err != nil || out.String() !=
		"ok       a       fine\nproblem  longer  broken\n         → repair it\n1 problem, 0 warnings, 2 checks\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := r.Text(&out, true); err != nil || !strings.Contains(out.String(), "\x1b[31mproblem\x1b[0m  longer") {
		t.Errorf("%v\n%q", err, out.String())
	}
	out.Reset()
	var decoded struct {
		Findings           []Finding
		Problems, Warnings int
	}
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &decoded); err != nil || !slices.Equal(decoded.Findings, r.Findings) ||
		decoded.Problems != 1 || decoded.Warnings != 0 {
		t.Errorf("%v: %s", err, out.String())
	}
}
