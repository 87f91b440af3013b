package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// claims returns what is promised of a full store. Bytes per device are promised for
// licenses with the usual number of devices.
func claims(perLicense int) []row {
	list := []row{
		{"share", "5,000,000 devices: database as it grew ÷ quota", []check{{unit: "%", must: 60, aim: 60}}},
		{"shrunk", "5,000,000 devices: database compacted and defragmented ÷ quota", []check{{unit: "%", must: 60, aim: 60}}},
		{"violations", "violations that licet store verify finds", []check{{must: 0, aim: 0}}},
		{"bytes", "database bytes per bound device", []check{
			{name: "with its history", unit: "B", must: 400, aim: 400},
			{name: "compacted and defragmented", unit: "B", must: 250, aim: 150},
		}},
		{"licenses", "new devices in the small store ÷ in the full store", []check{
			{name: "cold licenses", must: 1.3, aim: 1.1},
			{name: "warm licenses", must: 1.3, aim: 1.1},
		}},
	}
	return slices.DeleteFunc(list, func(r row) bool { return r.id == "bytes" && perLicense != devicesEach })
}

// capacityDocument is all that was found out.
type capacityDocument struct {
	Machine machine         `json:"machine"`
	Config  *capacityConfig `json:"settings"`
	Growth  []fillPoint     `json:"growth"`
	Claims  []result        `json:"claims"`
	Figures []*figure       `json:"figures"`
}

// writeTable prints it for people.
func (d *capacityDocument) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "claim\tmust\tmeasured\t")
	for _, line := range d.Claims {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", line.Figure, line.Must, format(line.Median, line.Unit), d.verdict(&line))
	}
	fmt.Fprintln(t, "\t\t\t")
	for _, f := range d.Figures {
		fmt.Fprintf(t, "%s\t\t%s\t\n", f.Name, format(median(f.Samples), f.Unit))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	g := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(g, "devices\tlicenses\tseconds\tdevices/s\tetcd RSS\tits own\tnode RSS\tdatabase\tin use\t")
	for _, p := range d.Growth {
		fmt.Fprintf(g, "%d\t%d\t%.0f\t%.0f\t%d\t%d\t%d\t%d\t%d\t\n", p.Devices, p.Licenses, p.Seconds, p.Rate,
			p.EtcdRSS>>20, p.EtcdAnonymous>>20, p.NodeRSS>>20, p.Database>>20, p.InUse>>20)
	}
	if err := g.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "Sizes in MiB. etcd's own memory is what it holds besides the database file, which it maps.")
	for _, line := range d.Claims {
		for _, note := range line.Notes {
			fmt.Fprintf(w, "%s: %s\n", line.Row, note)
		}
	}
	return nil
}

// verdict is pass or FAIL: nothing better than what is claimed is aimed at.
func (d *capacityDocument) verdict(line *result) verdict {
	if line.Verdict == aimed {
		return passed
	}
	return line.Verdict
}

func (d *capacityDocument) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(d) }
