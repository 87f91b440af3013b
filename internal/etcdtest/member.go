package etcdtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// memberVariable tells a test binary to be an etcd member, and which.
const memberVariable = "ETCDTEST_MEMBER"

const readyLine = "ready"

// spec is what a member's process is told.
type spec struct {
	Name    string
	Cluster string // all members, as etcd's initial-cluster
	Client  string // URL to serve on
	TLS     Files
}

// Main makes the test binary an etcd member if it was started as one, and
// returns if it was not. TestMain must call it first.
func Main() {
	text := os.Getenv(memberVariable)
	if text == "" {
		return
	}
	if err := serve(text); err != nil {
		fmt.Fprintln(os.Stderr, "etcd member:", err)
	}
	os.Exit(1)
}

func serve(text string) error {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	cfg, err := s.config()
	if err != nil {
		return err
	}
	go func() {
		// The pipe ends with the test that holds its other end.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Println(readyLine)
	case <-etcd.Server.StopNotify():
	}
	return <-etcd.Err()
}

func (s *spec) config() (*embed.Config, error) {
	peer, err := url.Parse(peerURL(s.Name))
	if err != nil {
		return nil, err
	}
	client, err := url.Parse(s.Client)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name = s.Name
	cfg.Dir = "data"
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.InitialCluster = s.Cluster
	cfg.EnableGRPCGateway = false
	cfg.UnsafeNoFsync = true // processes are killed here, not machines
	cfg.LogLevel = "error"
	cfg.LogOutputs = []string{"stderr"}
	if s.TLS != (Files{}) {
		cfg.ClientTLSInfo = transport.TLSInfo{
			CertFile: s.TLS.Cert, KeyFile: s.TLS.Key, TrustedCAFile: s.TLS.CA, ClientCertAuth: true,
		}
	}
	return cfg, nil
}
