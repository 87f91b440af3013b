package backup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
)

const (

	// backupLook is the pause between two reads of the record. Backups are hours apart.
	backupLook = 30 * time.Second
)

// Record notes in a store that a backup of the store, begun at this time, has succeeded. [Follow] reads the note.
// Changes since that time may be missing in the backup.
func Record(ctx context.Context, cfg Config, begun time.Time) error {
	client, err := etcd.Open(ctx, cfg)
	if err != nil {
		return err
	}
	_, err = client.Txn(ctx, "record_backup", nil,
		[]clientv3.Op{clientv3.OpPut(keyspace.BackupKey, keyspace.TimeInKey(begun))}, nil)
	if err != nil {
		err = fmt.Errorf("write the time of the backup: %w", err)
	}
	return errors.Join(err, client.Close())
}

// Store is a store in etcd.
type Store interface{ Client() *etcd.Client }

// Follow keeps the metric of the last backup up to date until ctx ends. While the store does not answer, the metric
// keeps its value.
func Follow(ctx context.Context, s Store, last prometheus.Gauge) {
	for {
		if err := Observe(ctx, s.Client(), last); err != nil && ctx.Err() == nil {
			s.Client().Log.Debug().Err(err).Msg("can't read the time of the last backup")
		}
		if !backoff.Sleep(ctx, backupLook) {
			return
		}
	}
}

// Observe sets the metric to the stored time, or to 0 if none is stored.
func Observe(ctx context.Context, client *etcd.Client, last prometheus.Gauge) error {
	value, err := client.Get(ctx, "read_backup", keyspace.BackupKey)
	if err != nil {
		return err
	}
	begun := 0.0
	if len(value) == keyspace.BackupTimeSize {
		begun = float64(binary.BigEndian.Uint64(value)) / 1000
	}
	last.Set(begun)
	return nil
}
