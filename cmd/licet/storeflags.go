package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"licet/kv"
	"licet/metrics"
)

// storeConfig is the settings of the commands that work on a store as it is: a
// cluster's, or the one in a data directory that no process uses.
type storeConfig struct {
	Etcd    etcdConfig
	DataDir string
}

func (c *storeConfig) addFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	c.Etcd.addFlags(fs)
	fs.StringVar(&c.DataDir, "data-dir", "", "`directory` of a stopped licet dev, instead of --etcd-endpoints")
}

// fromEnvironment sets what the command line did not. If that names a store,
// the environment's are not meant.
func (c *storeConfig) fromEnvironment(fs *pflag.FlagSet, lookup func(string) (string, bool)) error {
	endpoints, dir := fs.Lookup("etcd-endpoints"), fs.Lookup("data-dir")
	named := endpoints.Changed || dir.Changed
	return fromEnvironment(fs, func(name string) (string, bool) {
		if named && (name == variable(endpoints) || name == variable(dir)) {
			return "", false
		}
		return lookup(name)
	})
}

// settle takes from the environment what the command line did not set, and has the whole
// validated: by validate, which knows the command's other settings too.
func (c *storeConfig) settle(fs *pflag.FlagSet, validate func() error) error {
	if err := c.fromEnvironment(fs, os.LookupEnv); err != nil {
		return err
	}
	return validate()
}

func (c *storeConfig) validate() error {
	switch {
	case c.DataDir == "" && len(c.Etcd.Endpoints) == 0:
		return badUsage("--etcd-endpoints must name the store's etcd, or --data-dir the directory of a stopped licet dev")
	case c.DataDir != "" && len(c.Etcd.Endpoints) > 0:
		return badUsage("--etcd-endpoints and --data-dir name two stores: which one?")
	case c.DataDir != "":
		return nil
	}
	return c.Etcd.validate()
}

// reach gives what the store is opened with. For a data directory it takes the
// lock and starts the etcd, until leave is called.
func (c *storeConfig) reach(ctx context.Context, stderr io.Writer) (cfg kv.Config, leave func() error, err error) {
	log := zerolog.New(zerolog.ConsoleWriter{Out: stderr, NoColor: !isTerminal(stderr), TimeFormat: "15:04:05.000"}).
		Level(zerolog.WarnLevel).With().Timestamp().Logger()
	cfg, leave = c.Etcd.store(), func() error { return nil }
	if c.DataDir != "" {
		// Nothing must be made here: a directory that is misspelt has no store.
		if !kv.HasStore(c.DataDir) {
			return cfg, nil, fmt.Errorf("there is no store in %s", c.DataDir)
		}
		lock, err := kv.LockDir(c.DataDir)
		if err != nil {
			return cfg, nil, err
		}
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		etcd, err := kv.StartEmbedded(starting, c.DataDir, log)
		if err != nil {
			return cfg, nil, errors.Join(err, lock.Close())
		}
		cfg = kv.Config{Endpoints: etcd.Endpoints()}
		leave = func() error { etcd.Close(); return lock.Close() }
	}
	cfg.Metrics, cfg.Log = metrics.New(prometheus.NewRegistry(), "", "", ""), log
	return cfg, leave, nil
}

// withStore does work on the store, within keysTimeout once it is reached.
func (c *storeConfig) withStore(ctx context.Context, stderr io.Writer, work func(context.Context, *kv.Store) error) (err error) {
	cfg, leave, err := c.reach(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	store, err := kv.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	return work(ctx, store)
}
