package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"licet/client"
)

// scenario is one entry of scenarios.json: the defaults of a scenario. The scripts read
// the same file.
type scenario struct {
	About     string  `json:"about"`
	Rate      float64 `json:"rate"`     // arrivals a second
	Duration  string  `json:"duration"` // of the load
	Nodes     int     `json:"nodes"`
	Members   int     `json:"members"` // of etcd
	Licenses  []group `json:"licenses"`
	Events    []event `json:"events"`
	Kills     int     `json:"kills"`     // of random nodes, which start again; spread over the load
	Webhooks  bool    `json:"webhooks"`  // webhook endpoints receive the events of all changes
	Recovered float64 `json:"recovered"` // part of the duration from which on all must be as before; for the scripts
}

// group is licenses that are granted before the load. A script needs more licenses the
// longer it runs: PerArrival.
type group struct {
	Name       string  `json:"name"`
	Count      int     `json:"count"`
	PerArrival float64 `json:"per_arrival"`
	MaxDevices int     `json:"max_devices"` // 0: unlimited
	Bound      int     `json:"bound"`       // devices that each has from the beginning
	// LeaseSeconds is the length of the leases of their devices; 0: devices are bound. Longer than the load, except for
	// licenses whose devices only take leases that the journal calls so.
	LeaseSeconds int `json:"lease_seconds"`
}

// product returns the product of the licenses: editor, which every service has, or a product that terms describe.
func (g *group) product() (id string, terms client.ProductTerms) {
	if g.LeaseSeconds == 0 {
		return "editor", terms
	}
	return "floating-" + g.Name, client.ProductTerms{Name: "Load test", MaxDevices: &g.MaxDevices, DeviceMode: "leased",
		LeaseSeconds: g.LeaseSeconds}
}

// size returns how many licenses a group has.
func (g *group) size(rate float64, duration time.Duration) int {
	return g.Count + int(math.Ceil(g.PerArrival*rate*duration.Seconds()))
}

// event is something that happens to the service during the load.
type event struct {
	At float64 `json:"at"` // part of the duration
	Do string  `json:"do"` // one of the names in deeds
	// Node is the index of the node that the event happens to, from 0. Events of etcd ignore it.
	Node int `json:"node"`
}

// loadScenario reads one scenario's defaults.
func loadScenario(root, name string) (*scenario, error) {
	path := filepath.Join(root, "scenarios.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the scenarios: %w; run this in the repository's root", err)
	}
	var all map[string]*scenario
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s := all[name]
	if s == nil {
		names := slices.Sorted(maps.Keys(all))
		return nil, fmt.Errorf("there is no scenario %q; there are %s", name, strings.Join(names, ", "))
	}
	for _, e := range s.Events {
		if _, known := deeds()[e.Do]; !known {
			return nil, fmt.Errorf("%s: %s: no event %q", path, name, e.Do)
		}
	}
	return s, nil
}
