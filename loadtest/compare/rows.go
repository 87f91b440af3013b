package main

import (
	"fmt"
	"strings"
)

// row is one row of the table, with its numbers and their bounds.
type row struct {
	id     string
	figure string
	checks []check
}

// check is one number of a row, and its bounds.
type check struct {
	name    string // empty where the row has one number only
	unit    string // of the number; empty for a ratio
	atLeast bool   // else it must be at most
	must    float64
	aim     float64 // the same as must if there is no better aim
}

// Rows that only --only asks for.
const (
	capacityRow = "capacity"
	bytesRow    = "bytes" // of licenses with the usual number of devices
)

// rows returns the table with the promised bounds.
func rows() []row {
	return []row{
		{"distinct", "new devices on 20,000 warm distinct licenses ÷ single put",
			[]check{{atLeast: true, must: 1.0, aim: 1.4}}},
		{"cold", "the same, cold licenses", []check{{atLeast: true, must: 0.85, aim: 1.1}}},
		{"hot", "new devices on one hot license ÷ single put", []check{{atLeast: true, must: 2.0, aim: 3}}},
		{"reactivate", "re-activation of bound devices ÷ single get", []check{{atLeast: true, must: 1.5, aim: 2.2}}},
		{"mixed", "80 % bound, 20 % new, over one spilled license ÷ single put",
			[]check{{atLeast: true, must: 1.5, aim: 2.5}}},
		{"cpu", "node+etcd CPU per new device ÷ etcd+client CPU per single put", []check{{must: 0.9, aim: 0.6}}},
		{"idle", "one idle client: p50 of an activation ÷ p50 of a single put", []check{{must: 1.6, aim: 1.25}}},
		{"p99", "p99 at half the highest rate ÷ put's p99 at half its own, open loop", []check{{must: 1.5, aim: 1.0}}},
		{"devices", "device 300,001 of a license against device 1,001", []check{
			{name: "binding it", must: 1.15, aim: 1.0},
			{name: "page 1 of each", must: 1.15, aim: 1.0},
		}},
		{"overload", "3 × overload", []check{
			{name: "goodput ÷ highest rate", atLeast: true, must: 0.8, aim: 0.95},
			{name: "p99 of what is served", unit: "ms", must: 250, aim: 250},
		}},
		{"storm", "p99 of other licenses while one is stormed ÷ before", []check{{must: 2, aim: 1.5}}},
		{"guessing", "a storm of guessed license keys", []check{
			{name: "p99 of others meanwhile ÷ before", must: 2, aim: 1.5},
			{name: "requests to etcd for them", must: 0, aim: 0},
		}},
		{"memory", "node with 100,000 remembered licenses", []check{
			{name: "RSS", unit: "MiB", must: 150, aim: 80},
			{name: "goroutines per idle license", must: 0, aim: 0},
			{name: "RSS more for 10,000 idle connections", unit: "MiB", must: 150, aim: 80},
		}},
		{"members", "3-member etcd on the same cores: distinct ÷ its single put",
			[]check{{atLeast: true, must: 1.0, aim: 1.5}}},
		{"placement", "more nodes on the same cores", []check{
			{name: "one hot license on 3 nodes ÷ on 1", atLeast: true, must: 0.8, aim: 0.9},
			{name: "one hot license on 6 nodes ÷ on 1", atLeast: true, must: 0.8, aim: 0.9},
			{name: "distinct licenses on 6 nodes ÷ on 1", atLeast: true, must: 0.85, aim: 1.0},
			{name: "hops of a distinct activation", must: 0, aim: 0},
		}},
		{"events-on", "new devices while an endpoint gets all events ÷ while there is none", []check{
			{name: "distinct licenses", atLeast: true, must: 0.7, aim: 0.85},
			{name: "one license", atLeast: true, must: 0.7, aim: 0.85},
		}},
		{"accounts", "new devices on 20,000 licenses of 1,000 accounts ÷ on 20,000 of one account",
			[]check{{atLeast: true, must: 0.9, aim: 1.0}}},
		{"external", "activation by a warm external key ÷ by the license key", []check{
			{name: "of a new device", must: 1.1, aim: 1.0},
			{name: "of a bound device", must: 1.1, aim: 1.0},
		}},
		{"leases", "floating licenses of 10,000 devices: a renewal ÷ a new lease", []check{
			{name: "that is stored", must: 1.2, aim: 1.0},
			{name: "that stores nothing", must: 1.0, aim: 0.8},
		}},
		{"receipts", "activation with a receipt ÷ without", []check{
			{name: "of a new device", must: 1.6, aim: 1.3},
			{name: "of a bound device", must: 1.6, aim: 1.3},
			{name: "of a bound device, in signatures", must: 1.25, aim: 1.1},
		}},
		fairRow(),
		{"deliveries", "deliveries to one endpoint while devices are bound",
			[]check{{unit: "/s", atLeast: true, must: 2000, aim: 3000}}},
		{"backlog", "1,000,000 events for an endpoint that is enabled again", []check{
			{name: "RSS of the node at its peak", unit: "MiB", must: 200, aim: 150},
			{name: "events that never came", must: 0, aim: 0},
		}},
		{capacityRow, "5,000,000 devices", []check{
			{name: "database as it grew ÷ quota", unit: "%", must: 60, aim: 60},
			{name: "database compacted and defragmented ÷ quota", unit: "%", must: 60, aim: 60},
			{name: "violations that licet store verify finds", must: 0, aim: 0},
			{name: "small store ÷ full store, cold licenses", must: 1.3, aim: 1.1},
			{name: "small store ÷ full store, warm licenses", must: 1.3, aim: 1.1},
		}},
		{bytesRow, "database bytes per bound device", []check{
			{name: "with its history", unit: "B", must: 400, aim: 400},
			{name: "compacted and defragmented", unit: "B", must: 250, aim: 150},
		}},
	}
}

// meets reports whether a number is within a bound of the check.
func (c *check) meets(value, bound float64) bool {
	if c.atLeast {
		return value >= bound
	}
	return value <= bound
}

// bound formats a bound of the check.
func (c *check) bound(value float64) string {
	sign := "≤ "
	if c.atLeast {
		sign = "≥ "
	}
	return sign + format(value, c.unit)
}

// title names the check within its row.
func (r *row) title(c *check) string {
	if c.name == "" {
		return r.figure
	}
	return r.figure + ": " + c.name
}

// format formats a number with its unit, in as many digits as mean something.
func format(value float64, unit string) string {
	var text string
	switch {
	case value >= 100:
		text = fmt.Sprintf("%.0f", value)
	case value >= 10:
		text = fmt.Sprintf("%.1f", value)
	default:
		text = fmt.Sprintf("%.3f", value)
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	if unit != "" {
		text += " " + unit
	}
	return text
}
