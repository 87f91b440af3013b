package kv

import (
	"context"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"licet/kv/backup"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
)

// shownBackup returns the time of the last backup in the metric.
func shownBackup(t *testing.T, s *Store) float64 {
	t.Helper()
	var m dto.Metric
	if err := s.metrics.BackupSuccess.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// TestBackupsAreKnown: every node reports the last backup as the backup has recorded it in the store. Verify accepts
// the record.
func TestBackupsAreKnown(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	shown := func() float64 { return shownBackup(t, l.store) }
	if err := backup.Observe(l.ctx(), l.store.Client(), l.store.metrics.BackupSuccess); err != nil || shown() != 0 {
		t.Errorf("before any backup: %v, error %v", shown(), err)
	}
	cfg := backup.Config{Endpoints: l.client.Endpoints(), Metrics: kvtest.Metrics(), Log: zerolog.Nop()}
	for _, begun := range []time.Time{kvtest.Time, kvtest.Time.Add(1500 * time.Millisecond)} {
		if err := backup.Record(l.ctx(), cfg, begun); err != nil {
			t.Fatal(err)
		}
		err := backup.Observe(l.ctx(), l.store.Client(), l.store.metrics.BackupSuccess)
		if want := float64(begun.UnixMilli()) / 1000; err != nil || shown() != want {
			t.Errorf("after a backup at %v: %v, error %v", want, shown(), err)
		}
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}

	ended, end := context.WithCancel(l.ctx())
	end()
	if err := backup.Observe(ended, l.store.Client(), l.store.metrics.BackupSuccess); err == nil || shown() == 0 {
		t.Errorf("a store that does not answer: %v, error %v", shown(), err)
	}
}

// TestFollowBackupsLooksAtOnce: a node reports the last backup as soon as it has started.
func TestFollowBackupsLooksAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if err := backup.Record(l.ctx(), backupConfig(l.client.Endpoints()...), kvtest.Time); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.ctx())
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		backup.Follow(ctx, l.store, l.store.metrics.BackupSuccess)
	}()
	for shownBackup(t, l.store) == 0 {
		if ctx.Err() != nil {
			t.Fatal("the node has not read the record")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-followed
}
