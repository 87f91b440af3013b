package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"licet/kv"
)

// runDev runs a whole service until ctx ends or a part of it fails.
func runDev(ctx context.Context, cfg config, build build, stdout, stderr io.Writer) error {
	log, err := cfg.newLog(stderr)
	if err != nil {
		return err
	}
	s := newService(cfg, log)
	err = s.start(ctx, build)
	if err == nil {
		err = s.announce(ctx, stdout)
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-s.failed:
		case err = <-s.etcd.Err():
		}
		log.Info().Msg("stopping")
	}
	if ctx.Err() != nil {
		err = nil // it was told to stop, if only while it started
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

// announce tells, once requests are answered, where: to programs through
// envFile, which is there exactly while the service is ready, and to people.
func (s *service) announce(ctx context.Context, stdout io.Writer) error {
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	path, err := filepath.Abs(filepath.Join(s.cfg.DataDir, envFile))
	if err != nil {
		return fmt.Errorf("find the data directory: %w", err)
	}
	s.parts.started(envFile, func(context.Context) error { return removeFile(path) })
	if err := writeFile(path, devEnv(s.url, s.key.APIKey, s.secret)); err != nil {
		return fmt.Errorf("write %s: %w", envFile, err)
	}
	s.log.Info().Str("url", s.url).Str("account_id", s.key.AccountID).Msg("ready")
	_, err = io.WriteString(stdout, quickStart(s.url, path))
	return err
}

// stop takes the service down within the time that the configuration gives.
func (s *service) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.parts.stop(ctx) }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	// Steps that heed ctx are ending now; the rest gets a moment.
	select {
	case err := <-stopped:
		return err
	case <-time.After(cutOff):
		return fmt.Errorf("not everything stopped within %v; the rest was cut off", s.cfg.ShutdownTimeout)
	}
}

// cutOff is how long what ignores its deadline is waited for beyond it.
const cutOff = time.Second

// lock takes the data directory and clears away what an earlier process said
// of itself there: from here on until this one is ready, nobody must find an
// address.
func (s *service) lock() error {
	lock, err := kv.LockDir(s.cfg.DataDir)
	if err != nil {
		return err
	}
	s.parts.started("the lock of the data directory", func(context.Context) error { return lock.Close() })
	if err := removeFile(filepath.Join(s.cfg.DataDir, envFile)); err != nil {
		return fmt.Errorf("remove what an earlier process left: %w", err)
	}
	return nil
}
