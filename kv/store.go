package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/fair"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/store"
)

// Config says which etcd to use. Every field is required unless its comment says otherwise.
type Config struct {
	// Endpoints names every member of the cluster, as host:port, with http://
	// or https:// before it, or as unix:///path. There must be nothing between
	// them and this process: a proxy may repeat calls.
	Endpoints []string
	TLS       TLS // optional
	// Remembered is how many licenses are kept in memory; 0: 100,000.
	Remembered int
	// RecordActivations records the events of activations of every owner, even if the owner does not listen.
	RecordActivations bool
	Metrics           *metrics.Metrics
	Log               zerolog.Logger
	Tracer            *tracing.Tracer // nil: nothing is traced
}

// Etcd returns the part of the configuration that says which etcd to ask.
func (c *Config) Etcd() etcd.Config {
	return etcd.Config{Endpoints: c.Endpoints, TLS: c.TLS, Metrics: c.Metrics, Log: c.Log, Tracer: c.Tracer}
}

// TLS names the files that secure the connections to etcd.
type TLS = etcd.TLS

// Store keeps records in etcd. It implements store.Store. Make it with [Open];
// it is safe for concurrent use.
type Store struct {
	*core
	*epochs
	*requests
	*feeds
	*retention
	*apiKeys
	*views
	*historyCompactor
	*slotMap
	*registrations
	*recounts
	*dueWork

	recordActivations bool // every owner listens
	memory            *memory

	life       context.Context // of the background work
	end        context.CancelFunc
	background sync.WaitGroup
	scanning   atomic.Bool
}

// core is what all parts of a store use.
type core struct {
	etcd    *etcd.Client
	metrics *metrics.Metrics
	guard   *guard.Guard
	counts  *counts
	log     zerolog.Logger

	growth      growth
	sampledLog  zerolog.Logger // see newSampledLog
	incarnation store.Incarnation
	swaps       atomic.Uint64 // the last swap number that was given out
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Keys  = (*Store)(nil)
)

// Open connects to etcd. Open fails if no member has answered a read within ten seconds, if a member that answers is
// too old, or if the store has the layout of an earlier build.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	client, err := etcd.Open(ctx, cfg.Etcd())
	if err != nil {
		return nil, err
	}
	s, err := newStore(client, cfg.Metrics, cfg.Log, cfg.Remembered)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.recordActivations = cfg.RecordActivations
	return s, nil
}

func newStore(client *etcd.Client, m *metrics.Metrics, log zerolog.Logger, remembered int) (*Store, error) {
	c := &core{
		etcd: client, metrics: m, guard: guard.New(m, log), counts: newCounts(m), log: log,
		sampledLog: newSampledLog(log),
	}
	if _, err := rand.Read(c.incarnation[:]); err != nil {
		return nil, fmt.Errorf("make an incarnation id: %w", err)
	}
	e := &epochs{
		core: c, fences: fences{begun: make(chan struct{}), listeners: newListeners()}, owners: newKnownOwners(),
		moveEvery: moveEvery, moveTurn: make(chan struct{}, 1),
		moveWaits: fair.New[licensing.Owner](fair.Config{Places: maxMoveWaits, Each: moveWaits}),
	}
	slots := &slotMap{core: c}
	r := newRequests(e, slots)
	f := &feeds{requests: r}
	k := &apiKeys{epochs: e, keyLocks: fair.NewLocks[keyName]()}
	s := &Store{
		core: c, epochs: e, requests: r, feeds: f, retention: &retention{feeds: f}, apiKeys: k,
		views: &views{requests: r, keys: k}, historyCompactor: &historyCompactor{core: c}, slotMap: slots,
		registrations: &registrations{c}, recounts: &recounts{c}, dueWork: &dueWork{core: c},
	}
	s.life, s.end = context.WithCancel(context.Background())
	var err error
	if s.memory, err = newMemory(remembered); err != nil {
		return nil, fmt.Errorf("make the memory of licenses: %w", err)
	}
	s.views.memory = s.memory
	m.RecordsResident.AddSource(func() float64 { return float64(s.memory.licenses.EstimatedSize()) })
	return s, nil
}

// Close ends the connections to etcd.
func (s *Store) Close() error {
	s.end()
	s.background.Wait()
	return s.etcd.Close()
}

// Client returns the store's way to etcd, for the packages below kv.
func (s *core) Client() *etcd.Client { return s.etcd }

// NextWriter returns the writer of this store's next swap.
func (s *core) NextWriter() layout.Writer {
	return layout.Writer{By: s.incarnation, Swap: s.swaps.Add(1)}
}

// Incarnation is the name that this store's swaps carry.
func (s *core) Incarnation() store.Incarnation { return s.incarnation }

// Ping makes a linearizable read.
func (s *core) Ping(ctx context.Context) error {
	_, err := s.etcd.Get(ctx, "ping", keyspace.CheckKey, clientv3.WithKeysOnly())
	return err
}

// Space returns which changes etcd has room for.
func (s *core) Space() store.Space { return s.etcd.Space() }

// KeyCheck returns the store's check of license keys. On a new store, the first call makes the check key out of
// entropy; the check key never changes.
func (s *Store) KeyCheck(ctx context.Context, entropy io.Reader) (keyring.KeyCheck, error) {
	// A store that has a check key is only read: a node must also start while etcd is full.
	if stored, err := s.etcd.Get(ctx, "check_key", keyspace.CheckKey); err != nil || stored != nil {
		return keyCheckOf(stored, err)
	}
	// The store is new: all slots are here.
	fresh := make([]byte, keyspace.CheckKeySize)
	if _, err := io.ReadFull(entropy, fresh); err != nil {
		return keyring.KeyCheck{}, fmt.Errorf("make a check key: %w", err)
	}
	response, err := s.etcd.Txn(ctx, "check_key",
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(keyspace.CheckKey), "=", 0)},
		[]clientv3.Op{clientv3.OpPut(keyspace.SlotMapKey, string(layout.SlotMap{}.Encode())),
			clientv3.OpPut(keyspace.CheckKey, string(fresh)), clientv3.OpGet(keyspace.CheckKey)},
		[]clientv3.Op{clientv3.OpGet(keyspace.CheckKey)})
	if err != nil {
		return keyring.KeyCheck{}, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	// The stored key, from any writer: also our own key, if an attempt with a lost answer landed.
	gets := response.Responses
	stored := gets[len(gets)-1].GetResponseRange().Kvs[0].Value
	return keyCheckOf(stored, nil)
}

func keyCheckOf(stored []byte, err error) (keyring.KeyCheck, error) {
	if err == nil && len(stored) != keyspace.CheckKeySize {
		err = fmt.Errorf("the store's check key: %w", layout.ErrMalformed)
	}
	if err != nil {
		return keyring.KeyCheck{}, err
	}
	return keyring.NewKeyCheck(stored), nil
}

// OrderOwner returns the owner of the order with a number.
func (s *Store) OrderOwner(ctx context.Context, orderNo string) (licensing.Owner, bool, error) {
	value, err := s.etcd.Get(ctx, "order_owner", keyspace.OrderOwnerKey(orderNo))
	if err != nil || value == nil {
		return licensing.Owner{}, false, err
	}
	owner, err := layout.DecodeOwner(value)
	return owner, err == nil, layout.Internal(err)
}
