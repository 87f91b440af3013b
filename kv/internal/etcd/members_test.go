package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"licet/internal/etcdtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
)

func TestSupportedVersions(t *testing.T) {
	f := func(version string, want bool) {
		t.Helper()
		if got := Supported(version); got != want {
			t.Errorf("etcd %s is supported: %v, want %v", version, got, want)
		}
	}
	f("3.4.23", false)
	f("3.5.99", false)
	f("3.6.13", false)
	f("3.6.14-rc.0", false)
	f("3.6.14", true)
	f("3.6.20+git", true)
	f("3.7.0", false)
	f("3.7.1-alpha.0", false)
	f("3.7.1", true)
	f("3.8.0", true)
	f("4.0.0", true)
	f("2.3.8", false)
	f("", false)
	f("new", false)
}

// imposter is a member that says of itself what a test wants.
type imposter struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer
	endpoint string
	version  atomic.Pointer[string]
	cluster  uint64
	health   *health.Server
	reads    atomic.Int64 // of userKey
	// trouble, where it is set, is asked by each probe for its error: first by
	// that of the version, and if that is nil by that of the read.
	trouble atomic.Pointer[func(ctx context.Context, reading bool) error]
}

func (i *imposter) fault(ctx context.Context, reading bool) error {
	if trouble := i.trouble.Load(); trouble != nil {
		return (*trouble)(ctx, reading)
	}
	return nil
}

// userKey is a key that no probe reads.
const userKey = "user"

func startImposter(t *testing.T, version string, cluster uint64) *imposter {
	t.Helper()
	path := filepath.Join(kvtest.ShortTempDir(t), "etcd.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	i := &imposter{endpoint: "unix://" + path, cluster: cluster, health: health.NewServer()}
	i.version.Store(&version)
	server := grpc.NewServer()
	pb.RegisterMaintenanceServer(server, i)
	pb.RegisterKVServer(server, i)
	healthpb.RegisterHealthServer(server, i.health)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return i
}

// Status implements the maintenance service.
func (i *imposter) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if err := i.fault(ctx, false); err != nil {
		return nil, err
	}
	return &pb.StatusResponse{Header: &pb.ResponseHeader{ClusterId: i.cluster}, Version: *i.version.Load()}, nil
}

// Range implements the key-value service.
func (i *imposter) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if string(r.Key) == userKey {
		i.reads.Add(1)
	} else if err := i.fault(ctx, true); err != nil {
		return nil, err
	}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{}}, nil
}

func clientAt(t *testing.T, ctx context.Context, endpoints ...string) (*Client, error) {
	t.Helper()
	s, err := Open(ctx,
		Config{Endpoints: endpoints, Metrics: kvtest.Metrics(), Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

func ping(s *Client) error {
	_, err := s.Get(context.Background(), "ping", keyspace.CheckKey)
	return err
}

func TestOpenRefusesMembers(t *testing.T) {
	good := startImposter(t, "3.7.3", 7)
	old := startImposter(t, "3.6.13", 7)
	foreign := startImposter(t, "3.7.3", 8)

	_, err := clientAt(t, t.Context(), good.endpoint, old.endpoint)
	if err == nil || !strings.Contains(err.Error(), "etcd at "+old.endpoint+" is version 3.6.13") {
		t.Errorf("with a member that is too old: %v", err)
	}
	_, err = clientAt(t, t.Context(), good.endpoint, foreign.endpoint)
	if err == nil || !strings.Contains(err.Error(), "etcd at "+foreign.endpoint+" belongs to another cluster") {
		t.Errorf("with a member of another cluster: %v", err)
	}
}

// TestMemberThatGetsOlder finds a version that changes behind a store's back.
func TestMemberThatGetsOlder(t *testing.T) {
	t.Parallel()
	member := startImposter(t, "3.7.3", 7)
	s, err := clientAt(t, t.Context(), member.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	old, good := "3.7.0", "3.7.1"
	member.version.Store(&old)
	kvtest.Await(t, func() bool { return errors.Is(ping(s), ErrBarred) })
	if _, err := s.Txn(t.Context(), "test", nil, nil, nil); Classify(err) != Refused {
		t.Errorf("a transaction: %v", err)
	}
	member.version.Store(&good)
	kvtest.Await(t, func() bool { return ping(s) == nil })
}

// TestMemberThatSaysItDoesNotServe: a member that is being defragmented reports that it does not serve.
func TestMemberThatSaysItDoesNotServe(t *testing.T) {
	t.Parallel()
	one, other := startImposter(t, "3.7.3", 7), startImposter(t, "3.7.3", 7)
	s, err := clientAt(t, t.Context(), one.endpoint, other.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	read := func() {
		if _, err := s.Get(t.Context(), "test", userKey); err != nil {
			t.Error(err)
		}
	}
	kvtest.Await(t, func() bool { read(); return one.reads.Load() > 0 && other.reads.Load() > 0 })
	one.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	kvtest.Await(t, func() bool {
		before := one.reads.Load()
		for range 10 {
			read()
		}
		return one.reads.Load() == before
	})
	one.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	before := one.reads.Load()
	kvtest.Await(t, func() bool { read(); return one.reads.Load() > before })
}

func TestOpenSaysWhyNoMemberAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a busy machine needs some time to connect
	defer cancel()
	nobody := "unix://" + filepath.Join(kvtest.ShortTempDir(t), "nobody.sock")
	silent := silentEndpoint(t)
	_, err := clientAt(t, ctx, nobody, silent)
	if err == nil || !strings.Contains(err.Error(), "etcd can't be reached: "+nobody) ||
		!strings.Contains(err.Error(), "nobody.sock: connect: no such file") ||
		!strings.Contains(err.Error(), "; "+silent+": ") {
		t.Errorf("got error %v", err)
	}
}

// TestOpenNamesTheCauseWhenTimeIsUp ends the time in the middle of a probe:
// what the probe before that has found out must not be lost.
func TestOpenNamesTheCauseWhenTimeIsUp(t *testing.T) {
	member := startImposter(t, "3.7.3", 7)
	ctx, timeIsUp := context.WithCancel(t.Context())
	defer timeIsUp()
	var probes atomic.Int64
	trouble := func(ctx context.Context, _ bool) error {
		if probes.Add(1) == 1 {
			return status.Error(codes.Unavailable, "the true cause")
		}
		timeIsUp()
		<-ctx.Done()
		return ctx.Err()
	}
	member.trouble.Store(&trouble)
	if _, err := clientAt(t, ctx, member.endpoint); err == nil ||
		!strings.HasSuffix(err.Error(), "etcd can't be reached: "+member.endpoint+": the true cause") {
		t.Errorf("got error %v", err)
	}
	if probes.Load() < 2 {
		t.Error("it gave up before there was a second probe")
	}
}

// TestOpenReportsALostQuorum meets a member that runs and has no majority.
func TestOpenReportsALostQuorum(t *testing.T) {
	member := startImposter(t, "3.7.3", 7)
	ctx, timeIsUp := context.WithCancel(t.Context())
	defer timeIsUp()
	var reads atomic.Int64
	trouble := func(ctx context.Context, reading bool) error {
		switch {
		case !reading:
			return nil
		case reads.Add(1) == 1:
			return rpctypes.ErrGRPCTimeout
		}
		timeIsUp()
		<-ctx.Done()
		return ctx.Err()
	}
	member.trouble.Store(&trouble)
	if _, err := clientAt(t, ctx, member.endpoint); err == nil || !strings.Contains(err.Error(),
		member.endpoint+": it runs, but can't read, as where most members of its cluster are down: ") {
		t.Errorf("got error %v", err)
	}
}

// TestEachCauseIsLoggedOnce loses a member by a time-out, and only later learns
// why it stays away.
func TestEachCauseIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	m := &members{log: zerolog.New(&log)}
	lost := &member{endpoint: "etcd-0"}
	var before error
	for _, why := range []string{"", "timed out", "not trusted", "timed out", "not trusted", "a", "b", "c", "",
		"timed out"} {
		lost.err = nil
		if why != "" {
			lost.err = errors.New(why)
		}
		m.report(lost, before)
		before = lost.err
	}
	want := []string{
		`"timed out","message":"the etcd member does not answer"`, `"not trusted","message":"the etcd member still`,
		`"a","message":"the etcd member still`, `"b","message":"the etcd member still`,
		`the etcd member answers again`, `"timed out","message":"the etcd member does not answer"`,
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if !slices.EqualFunc(lines, want, strings.Contains) {
		t.Errorf("it logged\n%s", log.String())
	}
}

// silentEndpoint accepts connections and says nothing.
func silentEndpoint(t *testing.T) string {
	t.Helper()
	path := filepath.Join(kvtest.ShortTempDir(t), "silent.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "unix://" + path
}

// TestHangingMembersAreLeftOut stops a member of a cluster of three, or cuts one
// off from its peers, and sees that calls stop going there and come back.
func TestHangingMembersAreLeftOut(t *testing.T) {
	for _, fault := range []struct {
		name         string
		leader       bool
		inject, heal func(*testing.T, *etcdtest.Cluster, *etcdtest.Member)
	}{
		{
			"stopped follower", false,
			func(t *testing.T, _ *etcdtest.Cluster, m *etcdtest.Member) { m.Stop(t) },
			func(t *testing.T, _ *etcdtest.Cluster, m *etcdtest.Member) { m.Continue(t) },
		},
		{
			"isolated leader", true,
			func(_ *testing.T, c *etcdtest.Cluster, m *etcdtest.Member) { c.Isolate(m) },
			func(_ *testing.T, c *etcdtest.Cluster, m *etcdtest.Member) { c.Join(m) },
		},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			cluster := etcdtest.Start(t, 3)
			s, err := clientAt(t, t.Context(), cluster.Endpoints()...)
			if err != nil {
				t.Fatal(err)
			}
			inRotation := func(n int) func() bool {
				return func() bool { return len(s.Native.Endpoints()) == n }
			}
			kvtest.Await(t, inRotation(3))
			member, follower := cluster.Leader(t)
			if !fault.leader {
				member = follower
			}
			began := time.Now()
			fault.inject(t, cluster, member)
			kvtest.Await(t, inRotation(2))
			if slices.Contains(s.Native.Endpoints(), member.Endpoint) {
				t.Error("it is asked, and another is not")
			}
			noticed := time.Since(began)
			kvtest.Await(t, func() bool { return ping(s) == nil })
			quick := func() (err error) {
				for range 6 { // which would use each member twice
					began := time.Now()
					if err := ping(s); err != nil || time.Since(began) > time.Second {
						return fmt.Errorf("a read took %v: %v", time.Since(began), err)
					}
				}
				return nil
			}
			const tries = 4 // a busy machine may delay reads, too
			for try := 1; ; try++ {
				err := quick()
				if err == nil {
					break
				}
				if try == tries {
					t.Errorf("in each of %d tries, the last time: %v", tries, err)
					break
				}
			}
			starting := time.Now()
			if fresh, err := clientAt(t, t.Context(), cluster.Endpoints()...); err != nil {
				t.Errorf("a node can't start: %v", err)
			} else if err := ping(fresh); err != nil {
				t.Errorf("a node that has just started: %v", err)
			}
			if took := time.Since(starting); took > openTimeout {
				t.Errorf("a node started only after %v", took)
			}
			t.Logf("noticed after %v, calls are answered after %v", noticed, time.Since(began))
			fault.heal(t, cluster, member)
			kvtest.Await(t, inRotation(3))
		})
	}
}
