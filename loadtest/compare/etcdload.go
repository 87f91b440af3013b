package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/loadtest/rig"
)

const (
	valueSize      = 256
	baselinePrefix = "baseline/"
)

// baseline is etcd with its own client: single puts and linearizable gets.
type baseline struct {
	clients []*clientv3.Client // each is a connection of its own
	value   string
	written int // keys so far: each put has another
}

func newBaseline(etcd *rig.Cluster) (*baseline, error) {
	b := &baseline{value: strings.Repeat("v", valueSize)}
	for range maxClients {
		client, err := rig.NewEtcdClient(etcd.Endpoints)
		if err != nil {
			b.close()
			return nil, err
		}
		b.clients = append(b.clients, client)
	}
	return b, nil
}

func (b *baseline) close() {
	for _, client := range b.clients {
		_ = client.Close()
	}
}

// maxClients is the largest number of connections to etcd.
const maxClients = 4

// shape says how many operations a load makes at a time.
type shape struct {
	clients int // connections to etcd; not used for a node
	workers int // operations at a time
}

func (s shape) String() string {
	if s.clients > 0 {
		return fmt.Sprintf("%d×%d", s.clients, s.workers)
	}
	return fmt.Sprint(s.workers)
}

// key spreads numbers over the whole key space, as license keys are spread.
func (b *baseline) key(i int) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], mix(uint64(i)))
	return baselinePrefix + hex.EncodeToString(raw[:])
}

// puts returns workers that put a new key each time. The caller then calls wrote.
func (b *baseline) puts(ctx context.Context, s shape) workers {
	from := b.written
	return b.workers(s, func(client *clientv3.Client, i int) error {
		_, err := client.Put(ctx, b.key(from+i), b.value)
		return err
	})
}

// wrote records how many operations of puts were made.
func (b *baseline) wrote(o *outcome) { b.written += o.made }

// gets returns workers that read keys that were put.
func (b *baseline) gets(ctx context.Context, s shape) workers {
	return b.workers(s, func(client *clientv3.Client, i int) error {
		response, err := client.Get(ctx, b.key(int(mix(uint64(i))%uint64(b.written))))
		if err == nil && len(response.Kvs) != 1 {
			return errNotThere
		}
		return err
	})
}

var errNotThere = errors.New("a key that was put is not there")

func (b *baseline) workers(s shape, do func(*clientv3.Client, int) error) workers {
	all := make(workers, s.workers)
	for w := range all {
		client := b.clients[w%s.clients]
		all[w] = func(i int) int {
			if err := do(client, i); err != nil {
				return codeBroken
			}
			return 0
		}
	}
	return all
}
