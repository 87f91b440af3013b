package kv

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
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
)

// callTimeout bounds one request. etcd's own limit is 7 s, and its client would wait for a
// connection for ever.
const callTimeout = 2 * time.Second

// asker sends requests to etcd. It counts each request, bounds its time, and sends nothing that
// etcd is known to refuse.
type asker struct {
	// Native is etcd's own client. Its requests are not counted, but fail while no member may be asked.
	Native *clientv3.Client
	// Remote and KV are two views of the same connections: Remote takes etcd's own messages.
	// Tests put faults in between.
	Remote etcdserverpb.KVClient
	KV     clientv3.KV

	members  *members // nil where a test brings its own connections
	guard    *guard.Guard
	log      zerolog.Logger
	tracer   *tracing.Tracer // nil: nothing is traced
	inFlight prometheus.Gauge
	times    *metrics.StoreTimes
	reissued prometheus.Counter
}

// askerConfig says which etcd to ask, and where to count requests.
type askerConfig struct {
	Endpoints []string
	TLS       TLS
	Metrics   *metrics.Metrics
	Log       zerolog.Logger
	Tracer    *tracing.Tracer // nil: nothing is traced
}

// openAsker connects to etcd. It fails if no member has answered a linearizable read within ten
// seconds, or if the version of a member that answers is too old.
func openAsker(ctx context.Context, cfg askerConfig) (*asker, error) {
	watched := new(members)
	native, err := connect(cfg.Endpoints, cfg.TLS, watched.interceptors()...)
	if err != nil {
		return nil, err
	}
	c := newAsker(clientv3.RetryKVClient(native), native, cfg.Metrics, cfg.Log)
	c.members, c.tracer = watched, cfg.Tracer
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := c.members.watch(ctx, native, cfg.Log, c.guard); err != nil {
		return nil, errors.Join(err, native.Close())
	}
	return c, nil
}

// newAsker returns a client that sends reads and transactions through remote, and all else through
// native. It does not watch the members.
func newAsker(remote etcdserverpb.KVClient, native *clientv3.Client, m *metrics.Metrics, log zerolog.Logger) *asker {
	return &asker{
		Native: native, Remote: remote, KV: clientv3.NewKVFromKVClient(remote, native),
		guard: guard.New(m, log), log: log,
		inFlight: m.StoreInFlight, times: metrics.NewStoreTimes(m), reissued: m.SwapsReissued,
	}
}

// Full reports whether etcd's alarm NOSPACE is on, as far as is known.
func (c *asker) Full() bool { return c.members.full.Load() }

// SetFull sets what Full reports, until the next probe of the members.
func (c *asker) SetFull(full bool) { c.members.full.Store(full) }

// Close ends the connections.
func (c *asker) Close() error {
	c.members.close()
	return c.Native.Close()
}

// answered counts a request, and records it in the trace of its context.
func (c *asker) answered(ctx context.Context, operation string, started time.Time, err error) {
	c.inFlight.Dec()
	c.times.Observe(operation, classify(err).String(), time.Since(started))
	c.members.learn(err)
	if span := c.tracer.SpanFrom(ctx); span != nil {
		endCall(span.Child(etcdCall(operation, started)), err)
	}
}

// sent counts a request that is about to be sent, until answered.
func (c *asker) sent() (started time.Time) {
	c.inFlight.Inc()
	return time.Now()
}

// list reads a range of keys.
func (c *asker) list(ctx context.Context, operation, from string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	started := c.sent()
	response, err := c.KV.Get(ctx, from, opts...)
	c.answered(ctx, operation, started, err)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	return response, nil
}

// scan reads up to limit keys of a range at a revision; at revision 0, linearizably.
func (c *asker) scan(ctx context.Context, operation, from, to string, limit, revision int64, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return c.list(ctx, operation, from,
		append(opts, clientv3.WithRange(to), clientv3.WithLimit(limit), clientv3.WithRev(revision))...)
}

// get reads the value of one key, linearizably; nil where there is no such key.
func (c *asker) get(ctx context.Context, operation, key string, opts ...clientv3.OpOption) ([]byte, error) {
	response, err := c.list(ctx, operation, key, opts...)
	if err != nil || len(response.Kvs) == 0 {
		return nil, err
	}
	return response.Kvs[0].Value, nil
}

// getAll reads single keys in one request, linearizably; nil where there is no such key.
func (c *asker) getAll(ctx context.Context, operation string, keys []string) ([]*mvccpb.KeyValue, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	gets := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		gets[i] = clientv3.OpGet(key)
	}
	response, err := c.txn(ctx, operation, nil, gets, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	found := make([]*mvccpb.KeyValue, len(keys))
	for i := range keys {
		found[i] = firstOf(response.Responses, i)
	}
	return found, nil
}

// firstOf returns the first key that the i-th get of a transaction has found, or nil.
func firstOf(responses []*etcdserverpb.ResponseOp, i int) *mvccpb.KeyValue {
	kvs := responses[i].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}

// keyAfter returns the first key after a key, where the next page of a range begins.
func keyAfter[Key string | []byte](key Key) string { return string(key) + "\x00" }

// txn sends a transaction once.
func (c *asker) txn(ctx context.Context, operation string, compares []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if full := c.members.refusalOfPuts(); full != nil && opsPut(then) {
		return nil, full
	}
	started := c.sent()
	response, err := c.KV.Txn(ctx).If(compares...).Then(then...).Else(otherwise...).Commit()
	c.answered(ctx, operation, started, err)
	return response, err
}

// transact sends a transaction of the hot path once. It has a deadline of its own: the callers
// that share the transaction have different ones, and each minds its own.
func (c *asker) transact(operation string, request *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if full := c.members.refusalOfPuts(); full != nil && puts(request.Success) {
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
