package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"licet/kv"
	"licet/metrics"
)

// storeTimeout bounds the work of a command on an open store.
const storeTimeout = 20 * time.Second

// storeConfig has the settings of the commands that work on a store: either the store of a cluster, or the store in a
// data directory that no process uses.
type storeConfig struct {
	Etcd    etcdConfig
	DataDir string
}

func (c *storeConfig) addFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	c.Etcd.addFlags(fs)
	fs.StringVar(&c.DataDir, "data-dir", "", "data `directory` of a stopped licet dev, instead of --etcd-endpoints")
}

// complete sets the flags that the command line left unset from the environment, and validates all settings. If the
// command line names a store, complete ignores the store that the environment names.
func (c *storeConfig) complete(fs *pflag.FlagSet, validate func() error) error {
	endpoints, dir := fs.Lookup("etcd-endpoints"), fs.Lookup("data-dir")
	named := endpoints.Changed || dir.Changed
	err := fromEnvironment(fs, func(name string) (string, bool) {
		if named && (name == variable(endpoints) || name == variable(dir)) {
			return "", false
		}
		return os.LookupEnv(name)
	})
	if err != nil {
		return err
	}
	return validate()
}

func (c *storeConfig) validate() error {
	switch {
	case c.DataDir == "" && len(c.Etcd.Endpoints) == 0:
		return badUsage("no store: set --etcd-endpoints to the members of its etcd, or --data-dir to the data " +
			"directory of a stopped licet dev")
	case c.DataDir != "" && len(c.Etcd.Endpoints) > 0:
		return badUsage("--etcd-endpoints and --data-dir name two stores: set only one of them")
	case c.DataDir != "":
		return nil
	}
	return c.Etcd.validate()
}

// use runs work with the configuration to open the store. For a data directory, use runs the directory's etcd during
// the work.
func (c *storeConfig) use(ctx context.Context, stderr io.Writer, work func(context.Context, kv.Config) error) error {
	cfg := c.Etcd.store()
	cfg.Metrics, cfg.Log = metrics.New(prometheus.NewRegistry(), "", "", ""), newStoreLog(stderr, isTerminal(stderr))
	if c.DataDir == "" {
		return work(ctx, cfg)
	}
	return withEtcdOf(ctx, c.DataDir, cfg.Log, stderr, func(ctx context.Context, endpoint string) error {
		return work(ctx, kv.Config{Endpoints: []string{endpoint}, Metrics: cfg.Metrics, Log: cfg.Log})
	})
}

// newStoreLog returns the log of a command that works on a store.
func newStoreLog(stderr io.Writer, colors bool) zerolog.Logger {
	return zerolog.New(zerolog.ConsoleWriter{Out: stderr, NoColor: !colors, TimeFormat: "15:04:05.000"}).
		Level(zerolog.WarnLevel).With().Timestamp().Logger()
}

// withStore opens the store and runs work on it, for at most storeTimeout.
func (c *storeConfig) withStore(
	ctx context.Context, stderr io.Writer, work func(context.Context, *kv.Store) error,
) error {
	return c.use(ctx, stderr, func(ctx context.Context, cfg kv.Config) (err error) {
		store, err := kv.Open(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		return work(ctx, store)
	})
}
