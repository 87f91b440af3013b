package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"licet/client/webhook"
)

const (
	// meanwhileRate is how many devices are bound in a second while deliveries are
	// counted: each of them is told, too.
	meanwhileRate = 500
	// plainSenders is how many messages the plain client has under way: as many as
	// one endpoint can have.
	plainSenders = 32
)

// deliveries counts what comes to one endpoint whose events have been waiting, while
// devices are bound. A plain client of net/http then sends the same messages, signed,
// to the same receiver, under the same load.
func (l *lab) deliveries(ctx context.Context) error {
	l.progress.Step("starting etcd and a node that delivers")
	b, err := l.bench(ctx, 1, usualRetention, append(webhookFlags(), "--record-activations")...)
	if err != nil {
		return err
	}
	defer b.stop()
	b.alone()
	for number := range l.cfg.Rounds {
		l.progress.Step("deliveries, round %d of %d", number+1, l.cfg.Rounds)
		if err := l.deliver(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) deliver(ctx context.Context, b *bench) error {
	e, err := b.subscribe(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.cancel(context.WithoutCancel(ctx)) }() // the store ends soon
	if err := e.enable(ctx, false); err != nil {
		return err
	}
	f := &filler{node: b.node, apiKey: b.apiKey, each: devicesEach, list: newList()}
	if err := f.to(ctx, l.cfg.Deliveries/eventsEach, func(int) {}); err != nil {
		return err
	}
	if err := e.enable(ctx, true); err != nil {
		return err
	}
	if err := e.await(ctx, 1); err != nil {
		return err
	}
	got, bound, err := l.meanwhile(ctx, b, f, 1, e.events)
	if err != nil {
		return err
	}
	if left := f.list.Count()*eventsEach - e.events(); left <= 0 {
		l.report.note("deliveries", "all that waited was delivered before the time was over: the rate is too low")
	}
	if err := e.enable(ctx, false); err != nil {
		return err
	}
	if err := e.quiet(ctx); err != nil {
		return err
	}
	p := newPlainSender(e)
	stop := p.start(ctx)
	sent, _, err := l.meanwhile(ctx, b, f, 2, func() int { return int(p.sent.Load()) })
	if stop(); err != nil {
		return err
	}
	l.report.add("deliveries", "", got)
	l.report.inform("deliveries ÷ what a plain client sends", "", got/sent)
	l.report.inform("a plain client sends", "/s", sent)
	l.report.inform("deliveries: new devices meanwhile", "/s", bound.rate())
	l.report.inform("deliveries: p99 of a new device meanwhile", "ms", 1000*percentile(bound.waits(), 0.99).Seconds())
	l.report.inform("deliveries: CPU of the node, with the new devices, for each", "µs", float64(bound.node.Microseconds())/max(1, got*bound.elapsed.Seconds()))
	l.report.note("deliveries", e.describe())
	l.report.note("deliveries", p.describe())
	l.checkSample("deliveries", "new devices", bound)
	return nil
}

// meanwhile binds devices for a while, and gives how much something counts up in a
// second of that.
func (l *lab) meanwhile(ctx context.Context, b *bench, f *filler, pass uint64, count func() int) (rate float64, bound *sample, err error) {
	span := 2 * l.cfg.Span
	before, began := count(), time.Now()
	bound, err = b.activate(ctx, shape{workers: openWorkers}, f.list, spread(f.list.Count(), devicesEach*pass), opened(ctx, meanwhileRate, span))
	return float64(count()-before) / time.Since(began).Seconds(), bound, err
}

// plainSender sends messages with net/http, and does nothing else.
type plainSender struct {
	to     *endpoint
	client *http.Client
	list   []kept
	sent   atomic.Int64
	failed atomic.Int64
}

func newPlainSender(e *endpoint) *plainSender {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &plainSender{to: e, list: e.kept, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: plainSenders}}}
}

// start sends until it is told to stop.
func (p *plainSender) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	var next atomic.Int64
	for range plainSenders {
		group.Go(func() {
			for ctx.Err() == nil {
				if p.send(ctx, &p.list[int(next.Add(1))%len(p.list)]) == nil {
					p.sent.Add(1)
				} else if ctx.Err() == nil {
					p.failed.Add(1)
				}
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
		p.client.CloseIdleConnections()
	}
}

func (p *plainSender) send(ctx context.Context, m *kept) error {
	header, err := webhook.Sign(p.to.secret, m.id, time.Now(), m.body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.to.url, bytes.NewReader(m.body))
	if err != nil {
		return err
	}
	request.Header = header
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("HTTP %d", response.StatusCode)
	}
	return nil
}

// describe is what a row must not hide.
func (p *plainSender) describe() string {
	if n := p.failed.Load(); n > 0 {
		return fmt.Sprintf("the plain client failed %d times", n)
	}
	return ""
}
