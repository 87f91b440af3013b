package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	// memberVariable makes a process a member of etcd. Its value is the [Member] as JSON.
	memberVariable = "ETCD_MEMBER"
	readyLine      = "ready"
)

// Member describes a member of etcd. Where a field is empty, etcd's own default applies.
type Member struct {
	Name    string
	Dir     string // where the process runs; it contains the data
	Client  string // URL to serve clients on
	Peer    string // URL to serve the other members on
	Cluster string // all members, as etcd's initial-cluster

	Retention string // history that periodic compaction keeps, such as 1h; empty: history is never compacted
	Quota     int64  // of the database, in bytes
	NoSync    bool   // writes are not synced to the disk: enough where processes are killed, and no machine

	// Files of a certificate, its key, and the CA that clients must have one of. Empty: no TLS.
	CertFile, KeyFile, CAFile string
}

// StartEtcd starts a member in its directory, which must be there, and waits until the
// member serves. Its log is next to the directory, with ".log" after its name.
func StartEtcd(ctx context.Context, m Member, limit time.Duration) (*Child, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Dir = m.Dir
	cmd.Env = append(os.Environ(), memberVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	cmd.Stdout = stdout
	log, err := os.OpenFile(filepath.Clean(m.Dir)+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		_ = stdout.Close()
		return nil, err
	}
	child, err := Start(cmd, log)
	_ = stdout.Close() // the child has its own copy
	if err != nil {
		return nil, err
	}
	child.stdin = stdin
	giveUp := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	if line, _ := bufio.NewReader(ready).ReadString('\n'); line != readyLine+"\n" {
		child.Kill()
		return nil, fmt.Errorf("etcd member %s did not start: %s", m.Name, child.LogTail())
	}
	return child, nil
}

// BeEtcd returns at once unless [StartEtcd] has started this process. Then the process
// is a member of etcd, and BeEtcd does not return. Call it before anything else: first
// in main, or in TestMain.
func BeEtcd() {
	if text := os.Getenv(memberVariable); text != "" {
		fmt.Fprintln(os.Stderr, "etcd member:", serve(text))
		os.Exit(1)
	}
}

// serve runs a member until it fails, gets SIGTERM, or the process that started it ends.
func serve(text string) error {
	var m Member
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return fmt.Errorf("%s: %w", memberVariable, err)
	}
	cfg, err := m.config()
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
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		etcd.Close() // closes etcd.Err
	}()
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Println(readyLine)
	case <-etcd.Server.StopNotify():
	}
	return <-etcd.Err()
}

func (m *Member) config() (*embed.Config, error) {
	client, err := url.Parse(m.Client)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(m.Peer)
	if err != nil {
		return nil, err
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialCluster = m.Name, "data", m.Cluster
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	if m.Retention != "" {
		cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModePeriodic, m.Retention
	}
	cfg.QuotaBackendBytes = m.Quota
	cfg.UnsafeNoFsync = m.NoSync
	cfg.EnableGRPCGateway = false
	cfg.LogLevel, cfg.LogOutputs = "error", []string{"stderr"}
	if m.CAFile != "" {
		cfg.ClientTLSInfo = transport.TLSInfo{
			CertFile: m.CertFile, KeyFile: m.KeyFile, TrustedCAFile: m.CAFile, ClientCertAuth: true,
		}
	}
	return cfg, nil
}
