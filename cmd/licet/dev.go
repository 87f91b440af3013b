package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"licet/handlers"
	"licet/handlers/docs"
	"licet/kv"
	"licet/kv/embedded"
)

const (
	// startTimeout bounds the start after etcd has started, and the wait for readiness.
	startTimeout = 30 * time.Second
	// slowStart is how long a start takes until licet dev says what it waits for.
	slowStart = 2 * time.Second
	// readyPoll is the pause between two requests for readiness.
	readyPoll = 5 * time.Millisecond
	// devSweepEvery is short, so that expiry is easy to try out.
	devSweepEvery = 5 * time.Second
)

// dev is a complete service on one machine, with its own etcd. start sets key and secret.
type dev struct {
	*instance
	cfg devConfig

	key    *devKey
	secret string
	others string // other accounts of the store, if this start made a new account; empty: none
}

func newDev(cfg devConfig, log zerolog.Logger) *dev {
	s := newService(cfg.config, log)
	s.sweepEvery, s.expiryMargin = devSweepEvery, time.Second
	s.docs = true
	return &dev{instance: s, cfg: cfg}
}

// runDev runs a complete service until ctx ends or a part of the service fails.
func runDev(ctx context.Context, cfg devConfig, build build, stdout, stderr io.Writer) error {
	log, err := cfg.newLog(stderr)
	if err != nil {
		return err
	}
	d := newDev(cfg, log)
	err = d.run(ctx, func(ctx context.Context) error {
		started := make(chan struct{})
		defer close(started)
		d.guard.Start("message of a slow start", func() { d.sayWait(started) })
		if err := d.start(ctx, build); err != nil {
			return err
		}
		return d.announce(ctx, stdout)
	})
	return embedded.WithAdvice(err, cfg.DataDir)
}

// sayWait logs what a slow start waits for, unless started is closed before.
func (d *dev) sayWait(started <-chan struct{}) {
	select {
	case <-started:
	case <-time.After(slowStart):
		d.log.Info().Str("data_dir", d.cfg.DataDir).Msg(
			"waiting for etcd, which allocates or reads its files in the data directory: a minute for 2,000,000 " +
				"licenses, and more on slow disks")
	}
}

// start starts the parts of the service and pushes each started part onto d.parts, also if a later part fails. The
// parts stop in the reverse order.
func (d *dev) start(ctx context.Context, build build) error {
	if err := d.lock(); err != nil {
		return err
	}
	if err := d.listen(ctx, d.cfg.AllowRemote); err != nil {
		return err
	}
	etcd, err := embedded.Start(ctx, d.cfg.DataDir, d.log)
	if err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	d.parts.started("etcd", func(context.Context) error { etcd.Close(); return nil })
	d.died = etcd.Err()
	if err := d.open(starting, build, kv.Config{Endpoints: etcd.Endpoints()}); err != nil {
		return err
	}
	if err := d.loadKeys(starting); err != nil {
		return err
	}
	if err := d.describeHome(); err != nil {
		return err
	}
	if err := d.serveAPI(); err != nil {
		return err
	}
	if d.cfg.AllowRemote {
		d.log.Warn().Stringer("address", d.listener.Addr()).
			Msg("other machines may reach this service, without TLS and with payments that move no money")
		if d.cfg.PublicURL == "" {
			d.log.Warn().Str("pay_links_begin_with", d.url).
				Msg("pay links lead to this machine only; --public-url gives them another address")
		}
	}
	return nil
}

// checkKeyFiles compares missing files of keys with the store, before loadKeys creates them. It refuses a missing ring
// if the store uses master keys, and sets d.others if the key pair is missing and the store has API keys.
func (d *dev) checkKeyFiles(ctx context.Context) error {
	ringGone, pairGone := missing(d.cfg.DataDir, masterFile), missing(d.cfg.DataDir, keyFile)
	if !ringGone && !pairGone {
		return nil
	}
	found, err := d.store.MasterUses(ctx, time.Now())
	if err != nil {
		return err
	}
	if ringGone && len(found.Uses) > 0 {
		return fmt.Errorf("%s is missing, and the store has secrets that need its master keys: %s",
			filepath.Join(d.cfg.DataDir, masterFile), bringBack(d.cfg.DataDir))
	}
	if pairGone {
		d.others = strings.Join(accounts(found), ", ")
	}
	return nil
}

// accounts returns the accounts whose API keys or webhook endpoints found names.
func accounts(found *kv.MasterUsage) []string {
	var all []string
	for i := range found.Uses {
		for _, user := range found.Uses[i].Users {
			all = append(all, user.Owner.AccountID)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// bringBack says how to copy the files of keys into a data directory.
func bringBack(dir string) string {
	return fmt.Sprintf("copy it and %s from the data directory of the backup, or from your copies: "+
		"cp BACKUP/%s BACKUP/%s %s", keyFile, masterFile, keyFile, shellWord(dir))
}

// loadKeys reads the keys of the data directory, or creates them, and writes them to the store.
func (d *dev) loadKeys(ctx context.Context) error {
	if err := d.checkKeyFiles(ctx); err != nil {
		return err
	}
	ring, err := loadMasterRing(d.cfg.DataDir, rand.Reader)
	if err != nil {
		return err
	}
	if err := d.useRing(ctx, ring); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(d.cfg.DataDir, masterFile), err)
	}
	if d.key, err = loadDevKey(d.cfg.DataDir, ring, d.licenseKeys.KeyCheck, rand.Reader, time.Now()); err != nil {
		return err
	}
	record := d.key.record()
	if master, found := ring.Lookup(record.MasterID); found {
		if err := d.store.UseMaster(ctx, master); err != nil {
			return err
		}
	}
	if err := d.store.PutAPIKey(ctx, record); err != nil {
		return err
	}
	// A user may have revoked or rotated the key since.
	stored, err := d.store.APIKey(ctx, record.Hash)
	if err != nil {
		return err
	}
	if !stored.Usable(time.Now()) {
		d.log.Warn().Str("api_key_id", stored.ID).
			Msg("the key pair was revoked; remove " + keyFile +
				" from the data directory to get another account with a new one")
	}
	d.secret, err = ring.APISecret(stored)
	return err
}

// describeHome describes the page at /.
func (d *dev) describeHome() error {
	path, err := d.envFile()
	if err != nil {
		return err
	}
	d.home = &handlers.Home{
		Home: docs.Home{
			Version: d.version, URL: cmp.Or(d.cfg.PublicURL, d.url), EnvFile: path, ReadEnv: readEnv(path),
			Steps: steps(),
		},
		Owner: d.key.record().Owner, Private: !d.cfg.AllowRemote,
	}
	if d.admin != nil {
		d.home.MetricsURL = localURL(d.admin.Addr()) + "/metrics"
	}
	return nil
}

// envFile returns the path of the file that announce writes.
func (d *dev) envFile() (string, error) {
	path, err := filepath.Abs(filepath.Join(d.cfg.DataDir, envFile))
	if err != nil {
		return "", fmt.Errorf("find the data directory: %w", err)
	}
	return path, nil
}

// announce waits until the service is ready, and then publishes its URL and keys: to programs in envFile, which exists
// exactly while the service is ready, and to people on stdout.
func (d *dev) announce(ctx context.Context, stdout io.Writer) error {
	if err := d.awaitReady(ctx); err != nil {
		return err
	}
	path, err := d.envFile()
	if err != nil {
		return err
	}
	d.parts.started(envFile, func(context.Context) error { return removeFile(path) })
	if err := writeFile(path, devEnv(d.url, d.key, d.secret)); err != nil {
		return fmt.Errorf("write %s: %w", envFile, err)
	}
	d.log.Info().Str("url", d.url).Str("account_id", d.key.AccountID).Msg("ready")
	_, err = io.WriteString(stdout, quickStart(d.url, path, runtime.GOOS, d.cfg.ProfileInUse,
		d.cfg.StripeTest.KeyFile == ""))
	if d.others != "" { // after the text on stdout: the last lines catch the eye
		d.log.Warn().Str("account_id", d.key.AccountID).Str("other_accounts", d.others).
			Msg(keyFile + " was missing, so this start made a new account, which sees no license of the other " +
				"accounts of this store. To see theirs, stop the service and copy their " + keyFile + " into " +
				d.cfg.DataDir)
	}
	return err
}

// lock locks the data directory and removes the envFile of an earlier process: until this process is ready, there must
// be no envFile.
func (d *dev) lock() error {
	lock, err := embedded.LockDir(d.cfg.DataDir)
	if err != nil {
		return err
	}
	d.parts.started("the lock of the data directory", func(context.Context) error { return lock.Close() })
	if err := removeFile(filepath.Join(d.cfg.DataDir, envFile)); err != nil {
		return fmt.Errorf("remove the file of an earlier process: %w", err)
	}
	return nil
}

// awaitReady waits until /readyz reports that the service is ready.
func (d *dev) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if ready(ctx, d.url) {
			return nil
		}
		select {
		case err := <-d.failed:
			return err
		case err := <-d.died:
			return err
		case <-ctx.Done():
			return errors.New("the service started but did not become ready: see its log")
		case <-time.After(readyPoll):
		}
	}
}

// ready reports whether the service at url is ready.
func ready(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	// A separate transport uses no proxy from the environment and keeps no connection.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
