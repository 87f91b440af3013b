package main

import (
	"fmt"
	"strings"
	"sync"

	"licet/loadtest/trial"
)

// change is something that must be told once: a kind of event, the order or license
// that it is about, and the device that is meant, if one is.
type change struct{ kind, subject, device string }

func (c change) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s of %s %s", c.kind, c.subject, c.device))
}

// journal is what the service has acknowledged, and every answer that was not what
// it should be.
type journal struct {
	trial.Tally

	mu      sync.Mutex
	changes map[change]bool
	begun   map[string]bool // licenses that have been activated
}

func newJournal() *journal {
	return &journal{changes: map[change]bool{}, begun: map[string]bool{}}
}

// acknowledged notes changes that the service has confirmed.
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

// activated notes a device that was bound, and which of a license was the first of
// all: only for that is the device not known here, since many may come at once.
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
