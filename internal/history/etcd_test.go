package history

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// etcdServer is the etcd of one run. It compacts nothing, so that every revision can be looked at. A run has an etcd of
// its own: in an etcd of many runs each look for due work, each page of the feed and each history of revisions costs
// more with every run before it.
type etcdServer struct {
	dir    string
	etcd   *embed.Etcd
	client *clientv3.Client // straight into the server, past all faults
}

func startEtcd() (*etcdServer, error) {
	dir, err := os.MkdirTemp("", "licet-h")
	if err != nil {
		return nil, err
	}
	s := &etcdServer{dir: dir}
	if err := s.start(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *etcdServer) start() (err error) {
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(s.dir, "etcd")
	cfg.UnsafeNoFsync = true // no test here cuts the power
	cfg.ListenPeerUrls = nil
	listen := url.URL{Scheme: "unix", Path: s.socket("etcd")}
	cfg.ListenClientUrls = []url.URL{listen}
	cfg.AdvertiseClientUrls = []url.URL{listen}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.EnableGRPCGateway = false
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if s.etcd, err = embed.StartEtcd(cfg); err != nil {
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
	case err := <-s.etcd.Err():
		return err
	case <-time.After(busyTime):
		return errors.New("etcd does not start")
	}
	s.client = v3client.New(s.etcd.Server)
	return nil
}

// close stops the server and removes its data. The server must not be used any more.
func (s *etcdServer) close() {
	if s.client != nil {
		_ = s.client.Close()
	}
	if s.etcd != nil {
		s.etcd.Close()
	}
	_ = os.RemoveAll(s.dir)
}

// socket returns the path of a socket.
func (s *etcdServer) socket(name string) string { return filepath.Join(s.dir, name+".sock") }

// revision is the newest that etcd contains.
func (s *etcdServer) revision() int64 { return s.etcd.Server.KV().Rev() }
