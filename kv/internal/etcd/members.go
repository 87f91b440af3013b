package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/internal/backoff"
	"licet/kv/internal/keyspace"
	"licet/metrics"
	"licet/metrics/guard"
)

const (
	// openTimeout is how long Open waits for a first answer.
	openTimeout = 10 * time.Second
	// ProbePause is the pause between two rounds of probes, and probeTimeout bounds one probe. A member that hangs
	// still gets requests for up to the sum of both.
	ProbePause   = time.Second
	probeTimeout = time.Second
	// firstProbeTimeout is longer, because the client must know of each member at the start that the member is not
	// barred. Only a hanging member takes as long.
	firstProbeTimeout = 3 * time.Second
)

// members monitors the members of the cluster. Each is probed on a connection of its own, and the client's calls go
// only to members that answer.
//
// gRPC's own health checks do not suffice. A member that is cut off from its peers, or whose process is stopped, still
// has a connection, and its health service says nothing of a quorum; each call to that member would wait for its
// deadline.
type members struct {
	client  *clientv3.Client
	list    []*member
	metrics *metrics.Metrics
	log     zerolog.Logger
	guard   *guard.Guard

	// cluster is the id of the cluster that answered first. It is owned by the
	// goroutine, like the members' fields.
	cluster uint64

	// refusing is the reason why no member may be asked; nil if some member may be asked.
	refusing atomic.Pointer[error]

	space space
	hurry chan struct{} // contains a token while a probe is due at once

	cancel  context.CancelFunc
	stopped chan struct{} // closed once the goroutine has ended
}

// member is one endpoint. Its fields are owned by the goroutine of members.
type member struct {
	endpoint     string
	conn         *grpc.ClientConn
	cluster      uint64
	err          error    // of the last probe
	full         bool     // the last probe that was answered showed the alarm NOSPACE
	usage        usage    // of the last probe that was answered
	loggedCauses []string // the causes that were logged since it last answered
}

// errPanic is the failure of a probe that panicked.
var errPanic = errors.New("panic")

// ErrBarred marks a member that must not be asked even though it answers.
var ErrBarred = errors.New("refused")

// start returns once one member has answered a linearizable read, so that a quorum stands behind the member, and
// monitors the members from then on. Other members may be down. start fails if a member that answers is barred, and
// when ctx ends.
func (m *members) start(
	ctx context.Context, client *clientv3.Client, metrics *metrics.Metrics, log zerolog.Logger, guard *guard.Guard,
) error {
	m.client, m.metrics, m.log, m.guard = client, metrics, log, guard
	m.stopped, m.hurry = make(chan struct{}), make(chan struct{}, 1)
	for _, endpoint := range m.client.Endpoints() {
		conn, err := m.client.Dial(endpoint)
		if err != nil {
			m.closeConnections()
			return fmt.Errorf("etcd at %s: %w", endpoint, err)
		}
		m.list = append(m.list, &member{endpoint: endpoint, conn: conn})
	}
	if err := m.open(ctx); err != nil {
		m.closeConnections()
		return err
	}
	ctx, m.cancel = context.WithCancel(context.Background())
	m.guard.Start("etcd members", func() {
		defer close(m.stopped)
		m.guard.Keep(ctx, "etcd members", func() { m.run(ctx) })
	})
	return nil
}

// open probes the members until one answers.
func (m *members) open(ctx context.Context) error {
	var causes []string
	for {
		m.probe(ctx, firstProbeTimeout)
		var latest []string
		reached := false
		for _, member := range m.list {
			switch {
			case errors.Is(member.err, ErrBarred):
				return member.err
			case member.err == nil:
				reached = true
			default:
				latest = append(latest, member.endpoint+": "+cause(member.err))
			}
		}
		if reached {
			m.noteSpace()
			m.direct()
			return nil
		}
		// A round that the end of ctx has cut short knows only that time was up. The round before it knows the cause.
		if causes == nil || ctx.Err() == nil {
			causes = latest
		}
		if !backoff.Sleep(ctx, ProbePause/10) {
			return fmt.Errorf("etcd can't be reached: %s", strings.Join(causes, "; "))
		}
	}
}

func (m *members) run(ctx context.Context) {
	for m.awaitProbe(ctx) {
		before := make([]error, len(m.list))
		for i, member := range m.list {
			before[i] = member.err
		}
		m.probe(ctx, probeTimeout)
		if ctx.Err() != nil {
			return
		}
		for i, member := range m.list {
			m.report(member, before[i])
		}
		m.noteSpace()
		m.direct()
	}
}

// awaitProbe waits until the next round of probes is due. It reports false when ctx has
// ended.
func (m *members) awaitProbe(ctx context.Context) bool {
	timer := time.NewTimer(ProbePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.hurry:
	case <-ctx.Done():
		return false
	}
	return true
}

// direct sends calls to the members that answer. If no member answers, direct tries all members that are not barred,
// to find the first member that comes back.
func (m *members) direct() {
	var answering, allowed []string
	var barred error
	for _, member := range m.list {
		if member.err == nil {
			answering = append(answering, member.endpoint)
		}
		if errors.Is(member.err, ErrBarred) {
			barred = member.err
		} else {
			allowed = append(allowed, member.endpoint)
		}
	}
	if len(answering) == 0 {
		answering = allowed
	}
	if len(answering) == 0 {
		m.refusing.Store(&barred)
		return
	}
	m.refusing.Store(nil)
	if !slices.Equal(answering, m.client.Endpoints()) {
		m.client.SetEndpoints(answering...)
	}
}

// refusal returns why etcd must not be asked, or nil.
func (m *members) refusal() error {
	if barred := m.refusing.Load(); barred != nil {
		return *barred
	}
	return nil
}

// probe probes all members at once, and stores in each member how it went.
func (m *members) probe(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, probing{}, true), timeout)
	defer cancel()
	var group sync.WaitGroup
	for _, member := range m.list {
		m.guard.StartIn(&group, "probe of etcd", func() { member.err = member.probe(ctx) },
			func() { member.err = errPanic })
	}
	group.Wait()
	for _, member := range m.list {
		switch {
		case member.err != nil:
		case m.cluster == 0:
			m.cluster = member.cluster
		case m.cluster != member.cluster:
			member.err = fmt.Errorf("%w: etcd at %s belongs to another cluster than the member that answered first",
				ErrBarred, member.endpoint)
		}
	}
}

// probe checks the member's version, and that the member answers a linearizable read, which needs a quorum that talks
// to it.
func (m *member) probe(ctx context.Context) error {
	info, err := pb.NewMaintenanceClient(m.conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return err
	}
	m.cluster, m.full, m.usage = info.Header.ClusterId, reportsNoSpace(info), usageOf(info)
	if !Supported(info.Version) {
		return fmt.Errorf("%w: etcd at %s is version %s; %s, is needed", ErrBarred, m.endpoint, info.Version,
			NeededVersions)
	}
	if _, err = pb.NewKVClient(m.conn).Range(ctx,
		&pb.RangeRequest{Key: []byte(keyspace.CheckKey), KeysOnly: true}); err != nil {
		return unread(err)
	}
	return nil
}

// NeededVersions names the versions for which [Supported] returns true.
const NeededVersions = "3.6.14 or later, or 3.7.1 or later"

// Supported reports whether an etcd of a version may be used. Older versions can answer stale reads after a pause, and
// do not count nested transactions against the quota.
func Supported(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return false
	}
	if strings.Contains(version, "-") { // 3.7.1-rc.0 comes before 3.7.1
		patch--
	}
	switch {
	case major != 3:
		return major > 3
	case minor == 6:
		return patch >= 14
	case minor == 7:
		return patch >= 1
	}
	return minor > 7
}

// close ends the monitoring.
func (m *members) close() {
	m.cancel()
	<-m.stopped
	m.closeConnections()
}

func (m *members) closeConnections() {
	for _, member := range m.list {
		_ = member.conn.Close() // it fails only if it was closed before
	}
}
