package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/layout"
)

const (

	// backupLook is the pause between two looks at it. Backups are hours apart.
	backupLook = 30 * time.Second
)

// RecordBackup notes in a store that a backup of it, begun then, has ended well, for
// [Store.FollowBackups]. What was changed since it was begun may be missing in it.
func RecordBackup(ctx context.Context, cfg Config, begun time.Time) error {
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(s.recordBackup(ctx, begun), s.Close())
}

func (s *Store) recordBackup(ctx context.Context, begun time.Time) error {
	if _, err := s.etcd.Txn(ctx, "record_backup", nil, []clientv3.Op{clientv3.OpPut(layout.BackupKey, layout.TimeInKey(begun))}, nil); err != nil {
		return fmt.Errorf("write the time of the backup: %w", err)
	}
	return nil
}

// FollowBackups keeps the metric of the last backup up to date until ctx ends. While
// the store does not answer it stays as it was: backups do not get younger by that.
func (s *Store) FollowBackups(ctx context.Context) {
	ticker := time.NewTicker(backupLook)
	defer ticker.Stop()
	for {
		if err := s.readBackup(ctx); err != nil && ctx.Err() == nil {
			s.log.Debug().Err(err).Msg("the time of the last backup was not read")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// readBackup sets the metric to what is stored; nothing stored is 0.
func (s *Store) readBackup(ctx context.Context) error {
	value, err := s.etcd.Get(ctx, "read_backup", layout.BackupKey)
	if err != nil {
		return err
	}
	begun := 0.0
	if len(value) == layout.BackupTimeSize {
		begun = float64(binary.BigEndian.Uint64(value)) / 1000
	}
	s.metrics.BackupSuccess.Set(begun)
	return nil
}
