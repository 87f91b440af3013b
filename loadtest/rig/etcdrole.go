package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// memberVariable tells this program to be a member of etcd, and which.
const memberVariable = "LICET_LOAD_ETCD"

const memberReady = "ready"

// EtcdQuota is how large a store may get: etcd's highest advice. The default
// of 2 GiB would not hold a million licenses with their history.
const EtcdQuota = 8 << 30

// memberSpec is what a member's process is told.
type memberSpec struct {
	Name      string
	Dir       string
	Client    string // URL to serve on
	Peer      string // URL to serve the other members on
	Cluster   string // all members, as etcd's initial-cluster
	Retention string // how much history automatic compaction leaves
}

// BeEtcd is to be called before anything else. Where this process was started as a
// member of etcd, it is nothing but that, and ends with it.
func BeEtcd() {
	if text := os.Getenv(memberVariable); text != "" {
		fmt.Fprintln(os.Stderr, "etcd:", serveMember(text))
		os.Exit(ExitFailed)
	}
}

// serveMember runs a member until it fails, is told to end by SIGTERM, or whoever
// started this process is gone.
func serveMember(text string) error {
	var s memberSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("%s: %w", memberVariable, err)
	}
	cfg, err := s.config()
	if err != nil {
		return err
	}
	go func() {
		// The pipe ends with the process that holds its other end.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		etcd.Close() // which ends the errors below
	}()
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Println(memberReady)
	case <-etcd.Server.StopNotify():
	}
	return <-etcd.Err()
}

// config is etcd's own default wherever a measurement could tell: every write
// is synced to the disk.
func (s *memberSpec) config() (*embed.Config, error) {
	client, err := url.Parse(s.Client)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(s.Peer)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = s.Name, s.Dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.InitialCluster = s.Cluster
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, s.Retention
	cfg.QuotaBackendBytes = EtcdQuota
	cfg.LogLevel, cfg.LogOutputs = "error", []string{"stderr"}
	return cfg, nil
}
