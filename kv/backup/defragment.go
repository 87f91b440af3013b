package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
)

const (
	// defragmentTimeout bounds the work on one member, which writes its database anew.
	defragmentTimeout = 10 * time.Minute
	// wellTimeout bounds how long a member may take after the work until it serves again.
	wellTimeout = time.Minute
	// A member is worth the work if at least one part in worthShare of its database, and at least worthBytes, are free.
	worthShare = 10
	worthBytes = 1 << 20
)

// Defragmented is the result of one member.
type Defragmented struct {
	Endpoint      string
	Before, After int64 // bytes of its database's file
	Done          bool  // false: too little was free
}

// Defragment returns the space that compaction has freed in the members' databases to the disk. It defragments one
// member after the other, since a member serves no request meanwhile. The leader is the last, and first transfers its
// leadership to another member, so that writes continue. Defragment stops at the first unhealthy member: without a
// second member the cluster could lose its quorum.
//
// The configuration must name all members. Defragment calls report for each member that it has examined.
func Defragment(ctx context.Context, cfg Config, report func(Defragmented)) (err error) {
	d := &defragmenter{cfg: cfg, report: report}
	if d.client, err = etcd.Connect(cfg.Endpoints, cfg.TLS); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.client.Close()) }()
	states, err := d.statuses(ctx)
	if err != nil {
		return fmt.Errorf("nothing was done: %w", err)
	}
	// The leader last, so that the next leader need not transfer the leadership again.
	last := slices.IndexFunc(states, memberState.leads)
	for i, s := range states {
		if i != last {
			if err := d.member(ctx, s.endpoint); err != nil {
				return err
			}
		}
	}
	if last < 0 {
		return nil // the leader changed during the look, and all members are done
	}
	return d.member(ctx, states[last].endpoint)
}

type defragmenter struct {
	cfg    Config
	client *clientv3.Client
	report func(Defragmented)
}

// memberState is what a member reports about itself.
type memberState struct {
	endpoint string
	*pb.StatusResponse
}

func (s memberState) id() uint64  { return s.Header.MemberId }
func (s memberState) leads() bool { return s.Leader == s.id() }

// worthwhile reports whether enough of the file is free.
func (s memberState) worthwhile() bool {
	return s.DbSize-s.DbSizeInUse >= max(s.DbSize/worthShare, worthBytes)
}

// statuses reads the status of all members. It fails if a member is not healthy, or if the caller has not named it.
func (d *defragmenter) statuses(ctx context.Context) ([]memberState, error) {
	var states []memberState
	seen := map[uint64]string{}
	for _, endpoint := range d.cfg.Endpoints {
		s, err := d.well(ctx, endpoint)
		if err != nil {
			return nil, fmt.Errorf("etcd at %s does not serve: %w", endpoint, err)
		}
		if other := seen[s.id()]; other != "" {
			return nil, fmt.Errorf("%s and %s are the same member of etcd", other, endpoint)
		}
		seen[s.id()] = endpoint
		states = append(states, s)
	}
	call, cancel := context.WithTimeout(ctx, etcd.CallTimeout)
	defer cancel()
	members, err := d.client.MemberList(call)
	if err != nil {
		return nil, fmt.Errorf("list the members: %w", err)
	}
	for _, m := range members.Members {
		if seen[m.ID] == "" {
			return nil, fmt.Errorf("the member %q of etcd is not among the endpoints: name all %d", m.Name,
				len(members.Members))
		}
	}
	return states, nil
}

// well asks a member for its state and for a linearizable read. The read needs a quorum that talks to the member.
func (d *defragmenter) well(ctx context.Context, endpoint string) (s memberState, err error) {
	call, cancel := context.WithTimeout(ctx, etcd.CallTimeout)
	defer cancel()
	conn, err := d.client.Dial(endpoint)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	s.endpoint = endpoint
	if s.StatusResponse, err = pb.NewMaintenanceClient(conn).Status(call, &pb.StatusRequest{}); err != nil {
		return s, err
	}
	_, err = pb.NewKVClient(conn).Range(call, &pb.RangeRequest{Key: []byte(keyspace.CheckKey), KeysOnly: true})
	return s, err
}

// member defragments one member, if all members are well. A leader first transfers its leadership, even if it became
// the leader only a moment ago.
func (d *defragmenter) member(ctx context.Context, endpoint string) error {
	states, err := d.statuses(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(states, func(s memberState) bool { return s.endpoint == endpoint })
	s := states[at]
	done := Defragmented{Endpoint: endpoint, Before: s.DbSize, After: s.DbSize}
	if !s.worthwhile() {
		d.report(done)
		return nil
	}
	// A single member has no successor, and a learner can't lead.
	next := slices.IndexFunc(states, func(o memberState) bool { return o.endpoint != endpoint && !o.IsLearner })
	if s.leads() && next >= 0 {
		if err := d.moveLeader(ctx, endpoint, states[next].id()); err != nil {
			return fmt.Errorf("transfer the leadership of etcd at %s: %w", endpoint, needsRoot(err))
		}
	}
	call, cancel := context.WithTimeout(ctx, defragmentTimeout)
	defer cancel()
	if _, err := d.client.Defragment(call, endpoint); err != nil {
		return fmt.Errorf("defragment etcd at %s: %w", endpoint, needsRoot(err))
	}
	after, err := d.again(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("etcd at %s does not serve after it was defragmented: %w", endpoint, err)
	}
	done.After, done.Done = after.DbSize, true
	d.report(done)
	return nil
}

// again waits until a member is well again.
func (d *defragmenter) again(ctx context.Context, endpoint string) (memberState, error) {
	ctx, cancel := context.WithTimeout(ctx, wellTimeout)
	defer cancel()
	for {
		s, err := d.well(ctx, endpoint)
		if err == nil || !backoff.Sleep(ctx, etcd.ProbePause/10) {
			return s, err
		}
	}
}

// moveLeader transfers the leadership. It connects to the leader, since etcd accepts the request nowhere else.
func (d *defragmenter) moveLeader(ctx context.Context, leader string, next uint64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, wellTimeout)
	defer cancel()
	conn, err := d.client.Dial(leader)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	_, err = pb.NewMaintenanceClient(conn).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: next})
	return err
}
