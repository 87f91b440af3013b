package survey

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"licet/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	goleak.VerifyTestMain(m)
}

func facts(t *testing.T, cfg Config) *Facts {
	t.Helper()
	f, err := Cluster(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rawClient(t *testing.T, endpoints ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestCluster surveys three members, then without one endpoint, and then after a member's end. No key remains.
func TestCluster(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	all := cluster.Endpoints()
	f := facts(t, Config{Endpoints: all})
	for _, m := range f.Members {
		if m.Err != nil || !m.Supported || !m.HasLeader || m.Learner || m.Quota <= 0 || m.Size <= 0 ||
			len(m.Alarms) > 0 {
			t.Errorf("a healthy member is %+v", m)
		}
		if m.Clock.Date.IsZero() || m.Clock.Ahead() != 0 {
			t.Errorf("the clock of a member on this machine is %+v", m.Clock)
		}
	}
	if len(f.Put) != rounds || len(f.Get) != rounds || f.Secured || f.UsersErr != nil || len(f.Unnamed) > 0 ||
		!reflect.DeepEqual(f.Content, Content{}) {
		t.Errorf("the survey of an empty cluster is %+v", f)
	}
	got, err := rawClient(t, all...).Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil || got.Count != 0 {
		t.Errorf("%d keys remain, %v", got.Count, err)
	}
	if f := facts(t, Config{Endpoints: all[:2]}); len(f.Unnamed) != 1 {
		t.Errorf("the unnamed members are %v", f.Unnamed)
	}
	leader, _ := cluster.Leader(t)
	leader.Kill()
	cluster.Leader(t)
	dead := 0
	f = facts(t, Config{Endpoints: all})
	for _, m := range f.Members {
		if m.Err != nil {
			dead++
		}
	}
	if dead != 1 || f.PutErr != nil || f.GetErr != nil {
		t.Errorf("%d members are dead, put: %v, get: %v", dead, f.PutErr, f.GetErr)
	}
}

// TestAlarm surveys a member that accepts no writes.
func TestAlarm(t *testing.T) {
	endpoint := etcdtest.Start(t, 1).Endpoints()[0]
	client := rawClient(t, endpoint)
	conn, err := client.Dial(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := pb.NewMaintenanceClient(conn).Alarm(t.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE,
	}); err != nil {
		t.Fatal(err)
	}
	f := facts(t, Config{Endpoints: []string{endpoint}})
	if alarms := f.Members[0].Alarms; len(alarms) != 1 || alarms[0] != "NOSPACE" || f.PutErr == nil ||
		f.GetErr != nil || len(f.Put) > 0 {
		t.Errorf("the alarms are %q, put: %v, get: %v", alarms, f.PutErr, f.GetErr)
	}
}

// TestTLS reads the certificate of a member, and names a missing file.
func TestTLS(t *testing.T) {
	ca := etcdtest.NewCA(t)
	files := ca.Issue(t, "etcd", 1)
	cfg := Config{Endpoints: etcdtest.StartTLS(t, files).Endpoints()}
	cfg.TLS.CAFile, cfg.TLS.CertFile, cfg.TLS.KeyFile = files.CA, files.Cert, files.Key
	m := facts(t, cfg).Members[0]
	if m.Err != nil || len(m.Certificates) == 0 || m.Certificates[0].NotAfter.IsZero() || m.Clock.Date.IsZero() {
		t.Errorf("the member is %+v", m)
	}
	cfg.TLS.CAFile = "/none"
	if _, err := Cluster(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "/none") {
		t.Errorf("without the CA file: %v", err)
	}
}

// TestUntrusted names the certificate of a member that this machine does not accept. A member with such a certificate
// does not start, so a listener stands in for it.
func TestUntrusted(t *testing.T) {
	ca, other := etcdtest.NewCA(t), etcdtest.NewCA(t)
	refusal := func(files etcdtest.Files) error {
		t.Helper()
		own, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
		server.StartTLS()
		defer server.Close()
		cfg := Config{Endpoints: []string{server.URL}}
		cfg.TLS.CAFile = ca.File
		m := facts(t, cfg).Members[0]
		if m.Err == nil {
			t.Error("the member answers")
		}
		if m.Untrusted == nil {
			return nil
		}
		return m.Untrusted
	}
	var ended x509.CertificateInvalidError
	if err := refusal(ca.IssueUntil(t, "old", 2, time.Now().Add(-time.Minute))); !errors.As(err, &ended) ||
		ended.Reason != x509.Expired {
		t.Errorf("an expired certificate: %v", err)
	}
	var signer x509.UnknownAuthorityError
	if err := refusal(other.Issue(t, "foreign", 3)); !errors.As(err, &signer) {
		t.Errorf("a certificate of another authority: %v", err)
	}
	if err := refusal(ca.Issue(t, "good", 4)); err != nil {
		t.Errorf("a good certificate: %v", err)
	}
}

// TestNoAnswer surveys an address without etcd.
func TestNoAnswer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	f, err := Cluster(ctx, Config{Endpoints: []string{"http://127.0.0.1:1"}})
	if err != nil || f.Members[0].Err == nil || len(f.Put) > 0 {
		t.Errorf("it is %+v, %v", f, err)
	}
}

func TestClock(t *testing.T) {
	second := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	f := func(date time.Time, sent, received, want time.Duration) {
		t.Helper()
		c := Clock{Sent: second.Add(sent), Received: second.Add(received), Date: date}
		if got := c.Ahead(); got != want {
			t.Errorf("%+v is ahead by %v, want %v", c, got, want)
		}
	}
	const ms = time.Millisecond
	f(second, 0, ms, 0)
	f(second, 999*ms, 1001*ms, 0)
	f(second, 1500*ms, 1600*ms, -500*ms)
	f(second.Add(5*time.Second), 0, 2*time.Second, 3*time.Second)
	f(time.Time{}, 0, ms, 0)
}
