package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap/zapcore"

	"licet/metrics/guard"
)

const (
	memberName = "licet"
	// StoreDir is the directory of etcd's data in a data directory.
	StoreDir = "etcd"
	// PeerURL names the one member of the cluster to itself. Nothing listens at this URL, and nothing calls it: a
	// cluster of one has no peers.
	PeerURL = "http://localhost:2380"
	// compactEvery is how much history is kept, and how often older history is dropped.
	compactEvery = "1h"
	// electionTimeout bounds how long etcd may take until it serves, once it has read its files. Reading has no bound:
	// 1,000,000 licenses take half a minute.
	electionTimeout = 30 * time.Second
)

// Server is an etcd server inside this process, a cluster of one. It is for
// development: a crash of etcd ends the process, and etcd shares the
// process's memory and disk.
type Server struct {
	etcd    *embed.Etcd
	sockets *socketDir
	fatal   *failure
	dead    atomic.Bool // etcd has failed, and its goroutines never end
	failed  chan error
	closing chan struct{}
	close   func()
}

// Start starts an etcd server that keeps its data below dir, and returns once it serves. Every acknowledged write is on
// disk. The caller must hold the directory's lock, see [LockDir]. If ctx ends, Start returns once etcd has read its
// files: nothing stops etcd before.
//
// etcd listens only on a unix socket, in a directory that no other user may enter: the store has customer data, and
// every caller of etcd may read and change it.
func Start(ctx context.Context, dir string, log zerolog.Logger) (*Server, error) {
	return StartTuned(ctx, dir, log, func(*embed.Config) {})
}

// StartTuned is like Start, with a change of etcd's settings: tests start a server that is quicker and less careful.
func StartTuned(ctx context.Context, dir string, log zerolog.Logger, tune func(*embed.Config)) (*Server, error) {
	sockets, err := openSocketDir(dir)
	if err != nil {
		return nil, err
	}
	bridge := newEtcdLog(log)
	cfg := configOf(filepath.Join(dir, StoreDir), sockets.url(), bridge)
	tune(cfg)
	etcd, err := startEtcd(cfg, bridge.fatal)
	if err != nil {
		return nil, errors.Join(NewFailure(err), sockets.Close())
	}
	e := &Server{
		etcd:    etcd,
		sockets: sockets,
		fatal:   bridge.fatal,
		failed:  make(chan error, 1),
		closing: make(chan struct{}),
	}
	e.close = sync.OnceFunc(func() {
		close(e.closing)
		bridge.level.SetLevel(zapcore.DPanicLevel)
		if !e.dead.Load() { // the goroutines of a dead etcd never end
			etcd.Close()
		}
		if err := sockets.Close(); err != nil {
			log.Warn().Err(err).Msg("can't remove the etcd socket")
		}
	})
	select {
	case <-etcd.Server.ReadyNotify():
	case <-etcd.Server.StopNotify():
		err = errEtcdStopped
	case err = <-etcd.Err():
	case err = <-e.fatal.reason:
		e.dead.Store(true)
	case <-time.After(electionTimeout):
		err = errNotElected
		e.dead.Store(true) // an etcd that can't elect itself never ends
	case <-ctx.Done():
		err = ctx.Err()
		e.dead.Store(errors.Is(err, context.DeadlineExceeded))
	}
	if err != nil {
		e.Close()
		return nil, NewFailure(err)
	}
	bridge.level.SetLevel(zapcore.WarnLevel)
	guard.New(nil, log).Start("embedded etcd", e.awaitEnd,
		func() { e.failed <- NewFailure(errWaitPanicked) })
	return e, nil
}

// startEtcd returns the started etcd once etcd has read its files, or the reason for which etcd gave up or panicked.
// After etcd gave up, a goroutine stays that does nothing.
func startEtcd(cfg *embed.Config, fatal *failure) (*embed.Etcd, error) {
	type result struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				fatal.report(fmt.Errorf("panic: %v", p))
			}
		}()
		etcd, err := embed.StartEtcd(cfg)
		started <- result{etcd, err}
	}()
	select {
	case r := <-started:
		return r.etcd, r.err
	case err := <-fatal.reason:
		return nil, err
	}
}

var (
	errEtcdStopped  = errors.New("the embedded etcd has stopped; the log has the reason")
	errNotElected   = fmt.Errorf("etcd has read its files, but did not begin to serve within %v", electionTimeout)
	errWaitPanicked = errors.New("the wait for etcd's end panicked; the log has the details")
)

func configOf(dir string, client url.URL, bridge *etcdLog) *embed.Config {
	cfg := ConfigureMember(embed.NewConfig()) // fsync is on unless UnsafeNoFsync is set
	cfg.Dir = dir
	cfg.ListenPeerUrls = nil
	peer, err := url.Parse(PeerURL)
	if err != nil {
		panic(err) // the URL is a constant
	}
	cfg.AdvertisePeerUrls = []url.URL{*peer}
	cfg.ListenClientUrls = []url.URL{client}
	cfg.AdvertiseClientUrls = []url.URL{client}
	cfg.EnableGRPCGateway = false // the gateway would be another way in
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = compactEvery
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(bridge.zap())
	return cfg
}

// ConfigureMember sets the name and the addresses of the cluster of one member that owns the data.
func ConfigureMember(cfg *embed.Config) *embed.Config {
	cfg.Name = memberName
	cfg.InitialCluster = memberName + "=" + PeerURL
	return cfg
}

// awaitEnd waits for the server to end although Close was not called.
func (e *Server) awaitEnd() {
	var err error
	select {
	case <-e.closing:
		return
	case err = <-e.etcd.Err():
	case <-e.etcd.Server.StopNotify():
	case err = <-e.fatal.reason:
		e.dead.Store(true)
	}
	select {
	case <-e.closing: // Close was called after all
		return
	default:
	}
	if err == nil {
		err = errEtcdStopped
	}
	e.failed <- NewFailure(err)
}

// Endpoints returns the server's addresses for clients.
func (e *Server) Endpoints() []string {
	u := e.sockets.url()
	return []string{u.String()}
}

// Err returns one error if the server ends without having been closed. The
// process must end then, since nothing can be stored any more. After failures
// such as a full disk etcd stops where it is, and Close does not wait for it.
func (e *Server) Err() <-chan error { return e.failed }

// Close stops the server. It may be called more than once.
func (e *Server) Close() { e.close() }
