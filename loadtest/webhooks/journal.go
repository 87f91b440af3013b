package main

import (
	"fmt"
	"strings"
	"sync"

	"licet/loadtest/trial"
)

// change is something that must have exactly one event: the kind of event, the order or
// license it is about, and the device if the kind names one.
type change struct{ kind, subject, device string }

func (c change) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s of %s %s", c.kind, c.subject, c.device))
}

// journal records what the service has acknowledged, and each wrong answer.
type journal struct {
	trial.Tally

	mu      sync.Mutex
	changes map[change]bool
	begun   map[string]bool // licenses that have been activated
}

func newJournal() *journal {
	return &journal{changes: map[change]bool{}, begun: map[string]bool{}}
}

// acknowledged records changes that the service has confirmed.
func (j *journal) acknowledged(list ...change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range list {
		if j.changes[c] {
			j.Problem("%v was acknowledged twice", c)
		}
		j.changes[c] = true
	}
}

// activated records a device that was bound. The first device of a license causes one more
// event, for which the device is not recorded: of many concurrent activations any may be
// the first.
func (j *journal) activated(license, device string) {
	j.mu.Lock()
	first := !j.begun[license]
	j.begun[license] = true
	j.mu.Unlock()
	if first {
		j.acknowledged(change{kind: "license.activated", subject: license})
	}
	j.acknowledged(change{kind: "device.bound", subject: license, device: device})
}
