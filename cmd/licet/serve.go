package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"licet/cmd/licet/internal/cli"
)

// serveConfig contains the settings of licet serve.
type serveConfig struct {
	config
	Etcd            etcdConfig
	MasterKeyFile   string
	TLSCertFile     string
	TLSKeyFile      string
	DrainDelay      time.Duration
	InternalListen  string // where to listen for commands of other nodes
	InternalAddress string // the address for other nodes
	Docs            bool   // serve the API reference
}

func (c *serveConfig) addFlags(fs *pflag.FlagSet) {
	// Drain delay and shutdown timeout together stay below the 30 s that Kubernetes grants.
	c.config = config{Listen: ":8080", LogFormat: "json", ShutdownTimeout: 20 * time.Second}
	fs.SortFlags = false
	c.Etcd.addFlags(fs)
	fs.StringVar(&c.MasterKeyFile, "master-key-file", "", "`file` with the master keys, the current key first")
	c.config.addFlags(fs)
	fs.StringVar(&c.TLSCertFile, "tls-cert", "",
		"PEM `file` with the certificate for HTTPS; you may replace the file at any time")
	fs.StringVar(&c.TLSKeyFile, "tls-key", "", "PEM `file` with the private key of --tls-cert")
	fs.StringVar(&c.InternalListen, "internal-listen", "",
		"`address` to listen on for commands of other nodes, over TLS: one node then writes a license that many nodes "+
			"use (default: off)")
	fs.StringVar(&c.InternalAddress, "internal-address", "",
		"`address` at which other nodes reach --internal-listen (default: the address of --internal-listen, or, "+
			"without a host, the address from which this node connects to etcd, with the port of --internal-listen)")
	fs.BoolVar(&c.Docs, "docs", false,
		"serve the API reference at /docs, and add docs_url to errors; anyone who reaches the API can read it")
	fs.DurationVar(&c.DrainDelay, "drain-delay", 5*time.Second,
		"how long a stopping node fails readiness but still serves requests, before the shutdown timeout begins")
	nameVariables(fs)
}

func (c *serveConfig) validate() error {
	if err := c.Etcd.validate(); err != nil {
		return err
	}
	if c.MasterKeyFile == "" {
		return badUsage("--master-key-file must name a file with master keys; licet store master-key add creates one")
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") {
		return badUsage("--tls-cert and --tls-key go together: set both or neither")
	}
	if c.InternalAddress != "" && c.InternalListen == "" {
		return badUsage("--internal-address needs --internal-listen: set both")
	}
	if c.InternalAddress != "" && !validAddress(c.InternalAddress) {
		return badUsage("--internal-address is %q: write an address such as 10.0.0.7:7070", c.InternalAddress)
	}
	if c.DrainDelay < 0 {
		return badUsage("--drain-delay is %v: write at least 0s", c.DrainDelay)
	}
	return c.config.validate()
}

func newServeCommand(build build, stderr io.Writer) *cobra.Command {
	var cfg serveConfig
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node of a service on an etcd cluster",
		Long: `Run one node of a service on an etcd cluster. Nodes have no state of their own: run any number
of nodes, send requests to any node, and kill any node at any time.

--etcd-endpoints must name every etcd member. Each member needs etcd 3.6.14 or later, or 3.7.1
or later. Nodes must connect to members directly, without a proxy. All nodes need the same
master keys.`,
		Example: `  licet serve --etcd-endpoints 10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 \
    --master-key-file master.keys --public-url https://licenses.example.com
  licet serve … --etcd-ca ca.pem --etcd-cert node.pem --etcd-key node-key.pem
  licet serve … --tls-cert tls.crt --tls-key tls.key --metrics-listen :9090
  LICET_ETCD_ENDPOINTS=10.0.0.1:2379 licet serve …        set a flag by its environment variable`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			if err := cfg.validate(); err != nil {
				return err
			}
			return runServe(cmd.Context(), cfg, build, stderr)
		},
	}
	cfg.addFlags(cmd.Flags())
	return cmd
}

// runServe runs a node until ctx ends or a part of the node fails.
func runServe(ctx context.Context, cfg serveConfig, build build, stderr io.Writer) error {
	log, err := cfg.newLog(stderr)
	if err != nil {
		return err
	}
	n := newServe(cfg, log)
	return n.run(ctx, func(ctx context.Context) error { return n.start(ctx, build) })
}

// serve is one node on an etcd cluster.
type serve struct {
	*instance
	cfg serveConfig
}

func newServe(cfg serveConfig, log zerolog.Logger) *serve {
	s := newService(cfg.config, log)
	s.drainDelay, s.docs = cfg.DrainDelay, cfg.Docs
	return &serve{instance: s, cfg: cfg}
}

// start starts the parts of the node: listeners, the store, then the API.
func (s *serve) start(ctx context.Context, build build) error {
	ring, err := readMasterRing(s.cfg.MasterKeyFile)
	if err != nil {
		return err
	}
	if s.cfg.TLSCertFile != "" {
		certificate, err := loadCertificate(s.cfg.TLSCertFile, s.cfg.TLSKeyFile, s.log)
		if err != nil {
			return fmt.Errorf("the TLS certificate: %w", err)
		}
		s.security = certificate.config()
	}
	if err := s.listen(ctx, true); err != nil {
		return err
	}
	if err := s.listenForPeers(ctx, ring); err != nil {
		return err
	}
	if err := s.open(ctx, build, s.cfg.Etcd.store()); err != nil {
		return err
	}
	if err := s.useRing(ctx, ring); err != nil {
		return fmt.Errorf("--master-key-file %s: %w", s.cfg.MasterKeyFile, err)
	}
	if err := s.serveAPI(); err != nil {
		return err
	}
	if s.cfg.PublicURL == "" {
		s.log.Warn().Msg("--public-url is not set: pay links lead to an address of this machine, and clients must " +
			"sign requests for that address")
	}
	s.log.Info().Str("url", s.url).Stringer("master_keys", ring).Msg("ready")
	return nil
}
