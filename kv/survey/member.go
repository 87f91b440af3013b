package survey

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
)

// Member is what one member says of itself. If Err is not nil, the other fields are empty, except Untrusted.
type Member struct {
	Endpoint string
	Err      error
	// Untrusted says why this machine does not accept the certificate of the member; nil: it does, or another error has
	// come first.
	Untrusted *tls.CertificateVerificationError

	ID, Cluster        uint64
	Version            string
	Supported          bool // Licet works with the version
	HasLeader, Learner bool
	Size, InUse, Quota int64 // bytes of the database; no quota: negative
	Alarms             []string
	Clock              Clock
	Certificates       []*x509.Certificate // that the member shows; none without TLS
}

// Clock compares a clock with ours: an answer of the other side has a time of whole seconds. The zero value means that
// the answer has none.
type Clock struct {
	Sent, Received time.Time // of the request and its answer, by our clock
	Date           time.Time // by the other clock, cut to seconds
}

// Ahead returns by how much the other clock is ahead of ours for certain; negative: behind; 0: the clocks may agree.
func (c Clock) Ahead() time.Duration {
	switch {
	case c.Date.IsZero():
		return 0
	case c.Date.After(c.Received):
		return c.Date.Sub(c.Received)
	case c.Date.Add(time.Second).Before(c.Sent):
		return c.Date.Add(time.Second).Sub(c.Sent)
	}
	return 0
}

// members asks the member at each endpoint.
func (s *surveyor) members(ctx context.Context) error {
	security, err := s.cfg.TLS.ClientConfig()
	if err != nil {
		return fmt.Errorf("TLS to etcd: %w", err)
	}
	for _, endpoint := range s.cfg.Endpoints {
		m := Member{Endpoint: endpoint}
		if err := s.status(ctx, &m); err != nil {
			m = Member{Endpoint: endpoint, Err: err, Untrusted: untrusted(ctx, endpoint, security)}
		} else {
			m.ask(ctx, security)
		}
		s.facts.Members = append(s.facts.Members, m)
	}
	return nil
}

// status asks a member for its status.
func (s *surveyor) status(ctx context.Context, m *Member) (err error) {
	conn, err := s.client.Dial(m.Endpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	status, err := bounded(ctx, func(ctx context.Context) (*pb.StatusResponse, error) {
		return pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
	})
	if err != nil {
		return err
	}
	m.ID, m.Cluster = status.Header.MemberId, status.Header.ClusterId
	m.Version, m.Supported = status.Version, etcd.Supported(status.Version)
	m.HasLeader, m.Learner = status.Leader != 0, status.IsLearner
	m.Size, m.InUse, m.Quota = status.DbSize, status.DbSizeInUse, status.DbSizeQuota
	for _, trouble := range status.Errors {
		if _, alarm, found := strings.Cut(trouble, "alarm:"); found {
			m.Alarms = append(m.Alarms, strings.TrimSpace(alarm))
		}
	}
	return nil
}

// untrusted returns why this machine does not accept the certificate of a member. gRPC returns it only as a text.
func untrusted(ctx context.Context, endpoint string, security *tls.Config) *tls.CertificateVerificationError {
	address, secured := strings.CutPrefix(endpoint, "https://")
	if !secured {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: security}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
		return nil
	}
	var refused *tls.CertificateVerificationError
	errors.As(err, &refused)
	return refused
}

// ask reads the clock and the certificates of a member from an answer over HTTP, which etcd serves at the same address.
// A member may serve HTTP elsewhere: then neither is known.
func (m *Member) ask(ctx context.Context, security *tls.Config) {
	transport := &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}
	url := m.Endpoint
	if path, unix := strings.CutPrefix(m.Endpoint, "unix://"); unix {
		url = "http://etcd"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/version", http.NoBody)
	if err != nil {
		return
	}
	sent := time.Now()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return
	}
	received := time.Now()
	_ = response.Body.Close()
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		m.Clock = Clock{Sent: sent, Received: received, Date: date}
	}
	if response.TLS != nil {
		m.Certificates = response.TLS.PeerCertificates
	}
}
