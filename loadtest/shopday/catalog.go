package main

import (
	"fmt"
	"time"
)

// terms are the terms of a product's licenses, as this program understands them. It
// computes what it expects from the terms alone.
type terms struct {
	prefix         string
	maxDevices     int
	months         int // how long a license is good; 0: for ever
	fromActivation bool
	selfService    bool
	removals       int // by end users in a calendar month; 0: any number
}

// validity returns the ISO 8601 duration of the terms, empty if licenses never end.
func (t terms) validity() string {
	switch {
	case t.months == 0:
		return ""
	case t.months%12 == 0:
		return fmt.Sprintf("P%dY", t.months/12)
	default:
		return fmt.Sprintf("P%dM", t.months)
	}
}

func (t terms) validityFrom() string {
	if t.fromActivation {
		return "activation"
	}
	return "issue"
}

// product is a product. Its terms change in the middle of the day.
type product struct {
	id, name      string
	before, after terms
}

// Places in the catalog.
const (
	editor = iota
	studio
	cloud
)

func catalog() []product {
	return []product{
		editor: {
			id: "editor", name: "Editor",
			before: terms{prefix: "EDIT", maxDevices: 3},
			after:  terms{prefix: "EDITOR2", maxDevices: 5},
		},
		studio: {
			id: "studio", name: "Studio, one year",
			before: terms{prefix: "STUDIO", maxDevices: 2, months: 12},
			after:  terms{prefix: "STUDIO2", maxDevices: 4, months: 24},
		},
		cloud: {
			id: "cloud", name: "Cloud, by the month",
			before: terms{prefix: "CLOUD", maxDevices: 2, months: 1, fromActivation: true, selfService: true,
				removals: 2},
			after: terms{prefix: "CLOUD2", maxDevices: 3, months: 3, fromActivation: true, selfService: true,
				removals: 3},
		},
	}
}

// addMonths returns the same day some months later, or the last day of a shorter month.
func addMonths(t time.Time, months int) time.Time {
	t = t.UTC()
	later := t.AddDate(0, months, 0)
	if later.Day() != t.Day() { // it ran over into the month after
		later = later.AddDate(0, 0, -later.Day())
	}
	return later
}
