package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

const (
	// fillers is how many connections bind devices where only speed matters.
	fillers = 256
	// fillPiece is how many licenses get their devices together: few enough that the node
	// remembers them between their first device and their last.
	fillPiece = 10_000
	// fillTries is how often a piece is tried. Binding a bound device again changes nothing,
	// so a broken answer does not end an hour's work.
	fillTries = 10
)

// filler fills a store with licenses and their devices, over the API.
type filler struct {
	node   *rig.Node
	apiKey string
	each   int // devices of a license

	list    *rig.Keys
	spent   time.Duration // on binding
	retries int
}

// to adds licenses with their devices until there are so many licenses.
func (f *filler) to(ctx context.Context, licenses int, count func(bound int)) {
	for f.list.Count() < licenses {
		size := min(fillPiece, licenses-f.list.Count())
		piece := must(tries(ctx, f, func() (*rig.Keys, error) {
			return grant(ctx, f.node, f.apiKey, size, unlimited)
		}))
		first := f.list.Count()
		must(tries(ctx, f, func() (*outcome, error) {
			began := time.Now()
			defer func() { f.spent += time.Since(began) }()
			return bind(ctx, f.node, fillers, piece, size*f.each, f.pick(first, size))
		}))
		for i := range size {
			stopIf(f.list.Add(piece.At(i)))
		}
		count(f.bound())
	}
}

// pick is the pattern that gives the licenses of a piece all their devices, the first
// device of each first.
func (f *filler) pick(first, size int) func(i int) (int, device) {
	return func(i int) (int, device) {
		return i % size, device{salt: uint64(i / size), number: uint64(first + i%size)}
	}
}

func (f *filler) bound() int { return f.list.Count() * f.each }

// tries repeats something that fails, up to fillTries times.
func tries[T any](ctx context.Context, f *filler, do func() (T, error)) (result T, err error) {
	for try := range fillTries {
		if try > 0 {
			f.retries++
			rig.Rest(ctx, time.Duration(try)*time.Second) // a disk that is busy gets time
		}
		if result, err = do(); err == nil || ctx.Err() != nil {
			return result, err
		}
	}
	return result, fmt.Errorf("%d times: %w", fillTries, err)
}

// fillPoint is what etcd and the node use at some number of devices.
type fillPoint struct {
	Devices       int     `json:"devices"`
	Licenses      int     `json:"licenses"`
	Seconds       float64 `json:"seconds"` // since the first device
	Rate          float64 `json:"rate"`    // devices bound in a second, since the point before; granting left out
	EtcdRSS       int64   `json:"etcd_rss"`
	EtcdAnonymous int64   `json:"etcd_rss_anonymous"` // without the database file, which etcd maps
	NodeRSS       int64   `json:"node_rss"`
	Database      int64   `json:"database"`
	InUse         int64   `json:"database_in_use"`
}

// look reads what etcd and the node use now.
func look(ctx context.Context, etcd *rig.Cluster, n *rig.Node) (p fillPoint) {
	member := must(rig.MemoryOf(etcd.Members[0].PID()))
	node := must(rig.MemoryOf(n.PID()))
	p.EtcdRSS, p.EtcdAnonymous, p.NodeRSS = member.Resident, member.Anonymous, node.Resident
	status := must(etcd.Admin.Status(ctx, etcd.Endpoints[0]))
	p.Database, p.InUse = status.DbSize, status.DbSizeInUse
	return p
}

func (p *fillPoint) String() string {
	mib := func(bytes int64) float64 { return float64(bytes) / mebibyte }
	return fmt.Sprintf("%9d devices %8.0f/s   etcd %6.0f MiB (%.0f without the file)   node %5.0f MiB   database "+
		"%6.0f MiB, %.0f in use",
		p.Devices, p.Rate, mib(p.EtcdRSS), mib(p.EtcdAnonymous), mib(p.NodeRSS), mib(p.Database), mib(p.InUse))
}
