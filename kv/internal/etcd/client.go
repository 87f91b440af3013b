package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/store"
)

// CallTimeout bounds one request, unless a [Client] says otherwise. etcd's own limit is 7 s, and its client would wait
// for a connection for ever.
const CallTimeout = 2 * time.Second

// Client sends requests to etcd. It counts each request, bounds its time, and sends nothing that
// etcd is known to refuse.
type Client struct {
	// Native is etcd's own client. Its requests are not counted, but fail while no member may be asked.
	Native *clientv3.Client
	// Remote and KV are two views of the same connections: Remote takes etcd's own messages.
	// Tests put faults in between.
	Remote etcdserverpb.KVClient
	KV     clientv3.KV

	// CallTimeout bounds one request. Tests that measure no time set it higher: they share a busy machine.
	CallTimeout time.Duration

	// Log is for unusual answers.
	Log zerolog.Logger
	// Resent counts requests that are sent again, since their outcome is unknown.
	Resent prometheus.Counter

	unreadable    *metrics.DistinctCounter
	unreadableLog zerolog.Logger

	members  *members        // nil where a test brings its own connections
	life     context.Context // of requests that no caller can cancel
	end      context.CancelFunc
	guard    *guard.Guard
	tracer   *tracing.Tracer // nil: nothing is traced
	inFlight prometheus.Gauge
	times    *metrics.StoreTimes
}

// Config says which etcd to ask, and where to count requests.
type Config struct {
	Endpoints []string
	TLS       TLS
	Metrics   *metrics.Metrics
	Log       zerolog.Logger
	Tracer    *tracing.Tracer // nil: nothing is traced
}

// Open connects to etcd. It fails if no member has answered a linearizable read within ten
// seconds, if the version of a member that answers is too old, or with [ErrOldLayout].
func Open(ctx context.Context, cfg Config) (*Client, error) {
	monitored := new(members)
	native, err := Connect(cfg.Endpoints, cfg.TLS, monitored.interceptors()...)
	if err != nil {
		return nil, err
	}
	c := New(clientv3.RetryKVClient(native), native, cfg.Metrics, cfg.Log)
	c.members, c.tracer = monitored, cfg.Tracer
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := c.members.start(ctx, native, cfg.Metrics, cfg.Log, c.guard); err != nil {
		return nil, errors.Join(err, native.Close())
	}
	if err := c.refuseOldLayout(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// New returns a client that sends reads and transactions through remote, and all else through
// native. It does not monitor the members.
func New(remote etcdserverpb.KVClient, native *clientv3.Client, m *metrics.Metrics, log zerolog.Logger) *Client {
	life, end := context.WithCancel(context.Background())
	return &Client{
		life: life, end: end, Native: native, Remote: remote, KV: clientv3.NewKVFromKVClient(remote, native),
		CallTimeout: CallTimeout, Log: log, Resent: m.SwapsReissued,
		unreadable:    m.EventValuesUnreadable,
		unreadableLog: log.Sample(&zerolog.BurstSampler{Burst: 10, Period: time.Minute}),
		guard:         guard.New(m, log), inFlight: m.StoreInFlight, times: metrics.NewStoreTimes(m),
	}
}

// Space returns which changes etcd has room for, as of the last probe of the members.
func (c *Client) Space() store.Space {
	if c.members == nil {
		return store.SpaceFree
	}
	return c.members.space.now()
}

// DataHigh reports whether the data in use leave little room, so that a compaction of the history may help.
func (c *Client) DataHigh() bool { return c.members != nil && c.members.space.data.Load() }

// Compact removes the history before a revision. It is a no-op if the history is gone already.
func (c *Client) Compact(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	started := c.sent()
	_, err := c.Native.Compact(ctx, revision)
	if errors.Is(err, rpctypes.ErrCompacted) {
		err = nil
	}
	c.answered(ctx, "compact", started, err)
	return err
}

// SetSpace sets what Space returns, until the next probe of the members. Only tests of package kv call it.
func (c *Client) SetSpace(space store.Space) { c.members.space.known.Store(int32(space)) }

// Close ends the connections, and all requests under way.
func (c *Client) Close() error {
	c.end()
	c.members.close()
	return c.Native.Close()
}

// answered counts a request, and records it in the trace of its context.
func (c *Client) answered(ctx context.Context, operation string, started time.Time, err error) {
	c.inFlight.Dec()
	c.times.Observe(operation, Classify(err).String(), time.Since(started))
	c.members.learn(err)
	if span := c.tracer.SpanFrom(ctx); span != nil {
		EndSpan(span.Child(etcdCall(operation, started)), err)
	}
}

// sent counts a request that is about to be sent, until answered.
func (c *Client) sent() (started time.Time) {
	c.inFlight.Inc()
	return time.Now()
}

// List reads a range of keys.
func (c *Client) List(
	ctx context.Context, operation, from string, opts ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	started := c.sent()
	response, err := c.KV.Get(ctx, from, opts...)
	c.answered(ctx, operation, started, err)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	noteRead(store.ReadsOf(ctx), response.Kvs)
	return response, nil
}

// Page reads up to limit keys of a range at a revision; at revision 0, linearizably.
func (c *Client) Page(
	ctx context.Context, operation, from, to string, limit, revision int64, opts ...clientv3.OpOption,
) (*clientv3.GetResponse, error) {
	return c.List(ctx, operation, from,
		append(opts, clientv3.WithRange(to), clientv3.WithLimit(limit), clientv3.WithRev(revision))...)
}

// Get reads the value of one key, linearizably; nil where there is no such key.
func (c *Client) Get(ctx context.Context, operation, key string, opts ...clientv3.OpOption) ([]byte, error) {
	response, err := c.List(ctx, operation, key, opts...)
	if err != nil || len(response.Kvs) == 0 {
		return nil, err
	}
	return response.Kvs[0].Value, nil
}

// GetAll reads single keys in one request, linearizably; nil where there is no such key.
func (c *Client) GetAll(ctx context.Context, operation string, keys []string) ([]*mvccpb.KeyValue, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	gets := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		gets[i] = clientv3.OpGet(key)
	}
	response, err := c.Txn(ctx, operation, nil, gets, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	found := make([]*mvccpb.KeyValue, len(keys))
	for i := range keys {
		found[i] = First(response.Responses, i)
	}
	NoteReads(ctx, response.Responses)
	return found, nil
}

// NoteReads counts the bytes of responses, and keyCost for each key, for the caller whose reads they answer.
func NoteReads(ctx context.Context, responses []*etcdserverpb.ResponseOp) {
	if reads := store.ReadsOf(ctx); reads != nil {
		for _, response := range responses {
			noteRead(reads, response.GetResponseRange().GetKvs())
		}
	}
}

// keyCost is how many bytes a key counts besides its own: for etcd and the node, a small key is more work than its
// bytes are.
const keyCost = 512

func noteRead(reads *store.Reads, found []*mvccpb.KeyValue) {
	if reads == nil {
		return
	}
	bytes := 0
	for _, kv := range found {
		bytes += len(kv.Key) + len(kv.Value) + keyCost
	}
	reads.Note(bytes)
}

// First returns the first key that the i-th get of a transaction has found, or nil.
func First(responses []*etcdserverpb.ResponseOp, i int) *mvccpb.KeyValue {
	kvs := responses[i].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// After returns the first key after a key, where the next page of a range begins.
func After[Key string | []byte](key Key) string { return string(key) + "\x00" }

// Txn sends a transaction once.
func (c *Client) Txn(
	ctx context.Context, operation string, compares []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	if full := c.members.refusalOfPuts(); full != nil && opsPut(then) {
		return nil, full
	}
	started := c.sent()
	response, err := c.KV.Txn(ctx).If(compares...).Then(then...).Else(otherwise...).Commit()
	c.answered(ctx, operation, started, err)
	return response, err
}

// Transact sends a transaction of the hot path once. It has a deadline of its own: the callers
// that share the transaction have different ones, and each minds its own. Only Close cancels it.
func (c *Client) Transact(operation string, request *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(c.life, c.CallTimeout)
	defer cancel()
	if full := c.members.refusalOfPuts(); full != nil && Puts(request.Success) {
		return nil, full
	}
	started := c.sent()
	response, err := c.Remote.Txn(ctx, request, callOptions...)
	err = clientv3.ContextError(ctx, err)
	c.answered(ctx, operation, started, err)
	return response, err
}

// callOptions are the options that etcd's client gives its calls.
var callOptions = []grpc.CallOption{
	grpc.WaitForReady(true),
	grpc.MaxCallSendMsgSize(2 << 20),
	grpc.MaxCallRecvMsgSize(math.MaxInt32),
}
