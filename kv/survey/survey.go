package survey

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
)

// Config says which etcd to survey.
type Config = etcd.Config

// NeededVersions names the versions of etcd that Licet works with.
const NeededVersions = etcd.NeededVersions

const (
	// callTimeout bounds one request. It is longer than etcd's own limit of 7 s, so that etcd names the reason.
	callTimeout = 8 * time.Second
	// rounds is how often a latency is measured.
	rounds = 10
	// keyPrefix begins the keys that Survey puts. The keys of the store begin with another prefix.
	keyPrefix = "licet-doctor/"
	// keyTTL is how many seconds a key stays if the process is killed before it removes the key.
	keyTTL = 10
)

// Facts is the result of a survey.
type Facts struct {
	Members []Member // one for each endpoint, in the order of the endpoints
	Unnamed []string // the names of members that no endpoint leads to
	// Secured reports whether etcd demands users. It counts only if UsersErr is nil.
	Secured  bool
	UsersErr error
	// Put and Get are the measured latencies, sorted. They are empty if PutErr or GetErr is not nil.
	Put, Get       []time.Duration
	PutErr, GetErr error
	Content        Content
}

// Cluster asks every member, the cluster and the store. Errors of requests are facts; Cluster fails only if it can't
// ask at all, for example because a TLS file is missing.
func Cluster(ctx context.Context, cfg Config) (facts *Facts, err error) {
	client, err := etcd.Connect(cfg.Endpoints, cfg.TLS)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s := &surveyor{cfg: cfg, client: client, facts: &Facts{}}
	if err := s.members(ctx); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.facts.Members, func(m Member) bool { return m.Err == nil }) {
		s.unnamed(ctx)
		s.users(ctx)
		s.latency(ctx)
		s.content(ctx)
	}
	return s.facts, nil
}

type surveyor struct {
	cfg    Config
	client *clientv3.Client
	facts  *Facts
}

// bounded limits the time of one request.
func bounded[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return request(ctx)
}

// unnamed finds the members that no endpoint leads to. Without an answer, none is known.
func (s *surveyor) unnamed(ctx context.Context) {
	listed, err := bounded(ctx, func(ctx context.Context) (*clientv3.MemberListResponse, error) {
		return s.client.MemberList(ctx)
	})
	if err != nil {
		return
	}
	for _, m := range listed.Members {
		mayBe := func(named Member) bool { return named.ID == m.ID || named.Err != nil }
		if !slices.ContainsFunc(s.facts.Members, mayBe) {
			s.facts.Unnamed = append(s.facts.Unnamed, m.Name)
		}
	}
}

// users finds out whether etcd demands users.
func (s *surveyor) users(ctx context.Context) {
	status, err := bounded(ctx, s.client.AuthStatus)
	switch {
	case err == nil:
		s.facts.Secured = status.Enabled
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrUserEmpty):
		s.facts.Secured = true
	default:
		s.facts.UsersErr = err
	}
}

// latency measures how long puts and linearizable reads take, one after the other.
func (s *surveyor) latency(ctx context.Context) {
	key := keyPrefix + rand.Text()
	s.facts.Get, s.facts.GetErr = measure(func() error {
		_, err := bounded(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
			return s.client.Get(ctx, key)
		})
		return err
	})
	s.facts.Put, s.facts.PutErr = s.puts(ctx, key)
}

func (s *surveyor) puts(ctx context.Context, key string) (took []time.Duration, err error) {
	lease, err := bounded(ctx, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return s.client.Grant(ctx, keyTTL)
	})
	if err != nil {
		return nil, fmt.Errorf("take a lease: %w", err)
	}
	defer func() { // removes the key
		after := context.WithoutCancel(ctx)
		_, failed := bounded(after, func(ctx context.Context) (*clientv3.LeaseRevokeResponse, error) {
			return s.client.Revoke(ctx, lease.ID)
		})
		err = errors.Join(err, failed)
	}()
	return measure(func() error {
		_, err := bounded(ctx, func(ctx context.Context) (*clientv3.PutResponse, error) {
			return s.client.Put(ctx, key, "", clientv3.WithLease(lease.ID))
		})
		return err
	})
}

// measure returns how long a request takes each time, sorted. The first request, which may connect, does not count.
func measure(request func() error) ([]time.Duration, error) {
	var took []time.Duration
	for i := range rounds + 1 {
		began := time.Now()
		if err := request(); err != nil {
			return nil, err
		}
		if i > 0 {
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took, nil
}
