package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"licet/loadtest/rig"
)

const (
	// soakMinutes is how many parts a long run has. It takes ten minutes, so each part is one;
	// a shorter run has shorter parts.
	soakMinutes = 10
	// soakRetention lets etcd drop history during the run, as in a service that runs for days.
	// Otherwise the run would measure how a disk fills up.
	soakRetention = "1m"
)

// soak runs a node for long at half of its highest rate. Each license gets a first, a
// second and a third device. From then on its oldest device is removed before a new one is
// bound.
func (l *lab) soak(ctx context.Context, b *bench) error {
	// The limit exceeds the number of devices, so that a late removal causes no refusal.
	list, err := b.grant(ctx, l.cfg.Licenses, devicesEach+2)
	if err != nil {
		return err
	}
	connections := max(4*l.best.bind.workers, warmers)
	f := lifecycles(b, connections, list)
	defer f.close()
	if err := f.open(); err != nil {
		return err
	}
	w := &watcher{node: b.node, part: l.cfg.Soak / soakMinutes}
	count := l.progress.Long(int(l.cfg.Soak.Seconds()), "%v at half rate, %.0f/s", l.cfg.Soak, l.highest/2)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	group.Go(func() { w.run(watching, count) })
	o := f.openLoop(ctx, arrivals{rate: l.highest / 2, span: l.cfg.Soak})
	stop()
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.err != nil {
		return w.err
	}
	if text := o.describe(); text != "" {
		l.report.note("soak", text)
	}
	if l.cfg.Soak != fullSettings().Soak {
		l.report.note("soak", fmt.Sprintf("it ran for %v, and a minute stands for %v", l.cfg.Soak, w.part))
	}
	l.report.inform("soak: operations", "/s", o.rate())
	return w.report(l.report)
}

// lifecycles is a load whose operation i is license i modulo n's next step: bind, bind,
// bind, and then remove and bind in turns.
func lifecycles(b *bench, connections int, list *rig.Keys) *fleet {
	n := list.Count()
	request := newActivation(list)
	var removal []byte
	return newFleet([]string{b.node.Address}, connections, func(i int) []byte {
		license := i % n
		d, removed := lifecycle(i / n)
		d.number = uint64(license)
		if removed {
			removal = appendRemoval(removal[:0], list.At(license), d, b.apiKey)
			return removal
		}
		return request.of(list.At(license), d)
	})
}

// lifecycle returns the device of a license's step, and whether the step removes it.
func lifecycle(step int) (d device, removed bool) {
	if step < devicesEach {
		return device{salt: uint64(step)}, false
	}
	turn := step - devicesEach
	if turn%2 == 0 {
		return device{salt: uint64(turn / 2)}, true
	}
	return device{salt: uint64(devicesEach + turn/2)}, false
}

// watcher reads a node's memory and goroutines at intervals.
type watcher struct {
	node *rig.Node
	part time.Duration

	began      time.Time
	resident   [soakMinutes]series
	goroutines [soakMinutes]series
	err        error
}

type series struct {
	sum float64
	n   int
}

func (s *series) add(value float64) { s.sum, s.n = s.sum+value, s.n+1 }

func (s *series) mean() float64 { return s.sum / float64(s.n) }

// looks is how often the watcher reads in each part.
const looks = 20

func (w *watcher) run(ctx context.Context, count func(int)) {
	w.began = time.Now()
	ticks := time.NewTicker(w.part / looks)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		since := time.Since(w.began)
		count(int(since.Seconds()))
		at := int(since / w.part)
		if at >= soakMinutes {
			continue
		}
		memory, err := rig.MemoryOf(w.node.PID())
		if err != nil {
			w.err = err
			return
		}
		facts, err := factsOf(ctx, w.node)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.err = err
			return
		}
		w.resident[at].add(float64(memory.Resident))
		w.goroutines[at].add(facts.goroutines)
	}
}

// report compares the last part with the second.
func (w *watcher) report(r *report) error {
	second, last := 1, soakMinutes-1
	// In a very short run on a busy machine a part may have no readings.
	for second < last && w.resident[second].n == 0 {
		second++
	}
	for last > second && w.resident[last].n == 0 {
		last--
	}
	if second == last {
		return errors.New("the run was too short to read anything from the node")
	}
	r.add("soak", "RSS", w.resident[last].mean()/w.resident[second].mean())
	r.add("soak", "goroutines", w.goroutines[last].mean()/w.goroutines[second].mean())
	r.inform("soak: RSS in the last minute", "MiB", w.resident[last].mean()/mebibyte)
	r.inform("soak: goroutines in the last minute", "", w.goroutines[last].mean())
	return nil
}
