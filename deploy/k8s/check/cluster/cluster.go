package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 20 * time.Second
	// adminToken is good for this one server only.
	adminToken = "admin"
)

// Cluster is a running API server.
type Cluster struct {
	// URL is where it is reached, and CAFile has the authority of its certificate.
	URL, CAFile string

	dir   string
	http  *http.Client
	parts []*process
	kinds map[string]*resources
}

// Start starts etcd and the API server from a folder of programs, and waits until the
// server is ready.
func Start(ctx context.Context, programs string) (_ *Cluster, err error) {
	c := &Cluster{kinds: map[string]*resources{}}
	if c.dir, err = os.MkdirTemp("", "licet-kube"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	if err := c.startEtcd(programs, ports[0], ports[1]); err != nil {
		return nil, err
	}
	if err := c.startServer(programs, ports[0], ports[2]); err != nil {
		return nil, err
	}
	return c, c.ready(ctx)
}

// startEtcd starts the API server's own store.
func (c *Cluster) startEtcd(programs, client, peer string) error {
	return c.run(filepath.Join(programs, "etcd"),
		"--data-dir="+filepath.Join(c.dir, "etcd"), "--log-level=error", "--unsafe-no-fsync",
		"--listen-client-urls=http://"+client, "--advertise-client-urls=http://"+client,
		"--listen-peer-urls=http://"+peer, "--initial-advertise-peer-urls=http://"+peer,
		"--initial-cluster=default=http://"+peer)
}

func (c *Cluster) startServer(programs, etcd, address string) error {
	key := filepath.Join(c.dir, "accounts.key")
	if err := writeKey(key); err != nil {
		return err
	}
	tokens := filepath.Join(c.dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(adminToken+`,admin,admin,"system:masters"`+"\n"), 0o600); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	certificates := filepath.Join(c.dir, "certificates")
	c.URL, c.CAFile = "https://"+address, filepath.Join(certificates, "apiserver.crt")
	return c.run(filepath.Join(programs, "kube-apiserver"),
		"--etcd-servers=http://"+etcd, "--bind-address="+host, "--secure-port="+port, "--cert-dir="+certificates,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file="+key,
		"--service-account-key-file="+key,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount", "-v=0")
}

// ready waits until the server reports that it is ready.
func (c *Cluster) ready(ctx context.Context) error {
	var last error
	for {
		last = c.trust()
		if last == nil {
			_, last = c.call(ctx, http.MethodGet, "/readyz", "", nil)
		}
		if last == nil {
			return nil
		}
		for _, p := range c.parts {
			if p.over() {
				return fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), p.said.tail())
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w: %s", last, c.parts[len(c.parts)-1].said.tail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// trust reads the authority that the server has made at its start.
func (c *Cluster) trust() error {
	if c.http != nil {
		return nil
	}
	authority, err := os.ReadFile(c.CAFile)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return fmt.Errorf("%s has no certificate yet", c.CAFile)
	}
	c.http = &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 4},
		Timeout:   30 * time.Second,
	}
	return nil
}

// Stop ends both programs and removes what they have written.
func (c *Cluster) Stop() error {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	var failures []error
	for i := len(c.parts) - 1; i >= 0; i-- {
		failures = append(failures, c.parts[i].stop())
	}
	return errors.Join(append(failures, os.RemoveAll(c.dir))...)
}

// process is a running program.
type process struct {
	cmd   *exec.Cmd
	said  *output
	ended chan struct{}
}

func (c *Cluster) run(program string, args ...string) error {
	p := &process{cmd: exec.Command(program, args...), said: new(output), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	// The program ends with this process, even if this process is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.parts = append(c.parts, p)
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // stop has ended it, or its output says why it has ended
	}()
	return nil
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) stop() error {
	if p.over() {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("%s did not end", filepath.Base(p.cmd.Path)), p.cmd.Process.Kill())
	}
}

// output keeps the end of what a program writes.
type output struct {
	mu   sync.Mutex
	text []byte
}

const keptOutput = 4 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	o.text = o.text[max(0, len(o.text)-keptOutput):]
	return len(p), nil
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.TrimSpace(o.text))
}

// freePorts returns unused addresses of this machine.
func freePorts(n int) ([]string, error) {
	var list []string
	var held []io.Closer
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		held = append(held, listener)
		list = append(list, listener.Addr().String())
	}
	var failures []error
	for _, h := range held {
		failures = append(failures, h.Close())
	}
	return list, errors.Join(failures...)
}

// writeKey makes the key that signs tokens of service accounts.
func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
