package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/health" // without it, gRPC asks no server for its health
)

// TLS names the files that secure the connections to etcd. The certificate and
// the key are read again for each new connection, so they may be replaced at
// any time; the CA is read once.
type TLS struct {
	CAFile   string // empty: the system's
	CertFile string // empty: none is shown to etcd
	KeyFile  string
}

const (
	// etcd closes connections that ping more often than every 5 s, or while no
	// call is under way (server/embed/etcd.go, KeepaliveEnforcementPolicy). gRPC
	// does not ping more often than every 10 s, and the watch of the member's
	// health is a call that is always under way.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 3 * time.Second

	// reconnectPause is the longest pause before a lost member is called again.
	// gRPC's own is two minutes, and would keep a healed cluster away as long.
	reconnectPause = 2 * time.Second
	// connectTimeout bounds one attempt to connect: the kernel also accepts connections for a member whose process is
	// stopped.
	connectTimeout = 3 * time.Second

	// balancing is gRPC's service config: calls go round among the members whose health service says that they serve.
	// etcd's client sets a config of its own, without health checks. gRPC uses this config only if the other one is
	// disabled.
	balancing = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}}`
)

// Connect returns etcd's own client of the endpoints, without a check of the members and
// without a count of the requests. It does not wait for a connection.
func Connect(endpoints []string, files TLS, options ...grpc.DialOption) (*clientv3.Client, error) {
	security, err := files.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("TLS to etcd: %w", err)
	}
	pause := grpcbackoff.DefaultConfig
	pause.MaxDelay = reconnectPause
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  security,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		DialOptions: append(options,
			grpc.WithDisableServiceConfig(),
			grpc.WithDefaultServiceConfig(balancing),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: pause, MinConnectTimeout: connectTimeout}),
			grpc.WithNoProxy(), // a proxy of the environment would stand between us and etcd
		),
		// The client logs every retry along with its request's target. Failures that matter reach us as errors.
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("set up the etcd client: %w", err)
	}
	return client, nil
}

// ClientConfig returns the configuration of a client, or nil if no file is named. Without a CA file, the system's CAs
// verify an endpoint that begins with https://.
func (t TLS) ClientConfig() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	info := transport.TLSInfo{TrustedCAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, err
	}
	if config.RootCAs != nil && config.RootCAs.Equal(x509.NewCertPool()) {
		return nil, fmt.Errorf("%s has no certificate in it", t.CAFile)
	}
	config.MinVersion = tls.VersionTLS12
	return config, nil
}
