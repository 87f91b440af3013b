package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"licet/loadtest/rig"
)

// happening is an event that has happened, for the report.
type happening struct {
	What  string `json:"what"`
	Begun int64  `json:"begun"` // milliseconds since 1970
	Ended int64  `json:"ended"`
}

// director runs the events of the scenario, at times counted from the beginning of the load, which k6 reports over HTTP
// on loopback.
type director struct {
	cfg      *config
	service  *service
	progress *rig.Progress
	server   *httptest.Server
	ctx      context.Context // nodes that are started again live as long as ctx
	over     chan struct{}   // closed by finish: no further event is begun
	done     chan struct{}   // closed after the last event
	weight   weight          // of the nodes when they were last weighed

	mu    sync.Mutex
	began time.Time // zero: not yet
	past  []happening
	err   error
}

func newDirector(ctx context.Context, cfg *config, s *service, progress *rig.Progress) *director {
	d := &director{
		cfg: cfg, service: s, progress: progress, ctx: ctx, over: make(chan struct{}), done: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /begin", func(http.ResponseWriter, *http.Request) { d.begin() })
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, _ *http.Request) { d.tell(w) })
	d.server = httptest.NewServer(mux)
	return d
}

// begin starts the events, counted from now.
func (d *director) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.IsZero() {
		d.began = time.Now()
		go d.direct(d.began)
	}
}

func (d *director) direct(began time.Time) {
	defer close(d.done)
	for _, e := range d.cfg.scenario.Events {
		at := time.Duration(e.At * float64(d.cfg.duration))
		select {
		case <-d.over:
			return
		case <-time.After(time.Until(began.Add(at))):
		}
		if err := d.one(e); err != nil {
			d.mu.Lock()
			d.err = fmt.Errorf("%s: %w", e.name(), err)
			d.mu.Unlock()
			return
		}
	}
}

// one runs one event. If the service was not started here, it only prints that now is the time to do it by hand.
func (d *director) one(e event) error {
	h := happening{What: e.name(), Begun: time.Now().UnixMilli()}
	if d.service.Scene == nil {
		d.progress.Say("now is the time to do it by hand: %s", e.name())
	} else {
		d.progress.Say("%s", e.name())
		if err := deeds()[e.Do].do(d.ctx, d, e.Node); err != nil {
			return err
		}
	}
	h.Ended = time.Now().UnixMilli()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.past = append(d.past, h)
	return nil
}

// name returns what an event is called in a report.
func (e *event) name() string {
	if deeds()[e.Do].onNode {
		return fmt.Sprintf("%s node %d", e.Do, e.Node+1)
	}
	return e.Do
}

func (d *director) tell(w http.ResponseWriter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = json.NewEncoder(w).Encode(append([]happening{}, d.past...))
}

// finish is called after the load. All events must have ended before the load did: a load
// without them proves nothing.
func (d *director) finish() error {
	close(d.over)
	d.mu.Lock()
	began := d.began
	d.mu.Unlock()
	if began.IsZero() {
		return errors.New("the load has never begun")
	}
	<-d.done
	d.mu.Lock()
	defer d.mu.Unlock()
	end := began.Add(d.cfg.duration).UnixMilli()
	planned := len(d.cfg.scenario.Events)
	switch {
	case d.err != nil:
		return d.err
	case len(d.past) < planned, planned > 0 && d.past[planned-1].Ended > end:
		return errors.New("the load was over before all had happened to the service: it needs a longer --duration")
	}
	return nil
}
