package main

import (
	"math"
	"strconv"
)

// scaled are names of units with how much of the base each is, the largest first.
type scaled []struct {
	of   float64
	name string
}

var (
	times    = scaled{{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}
	binary   = scaled{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}
	decimal  = scaled{{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}}
	thousand = scaled{{1e9, "Bil"}, {1e6, "Mil"}, {1e3, "K"}, {1, ""}}
	rates    = map[string]string{"reqps": "req/s", "ops": "ops/s", "cps": "c/s", "cpm": "c/m"}
)

// format writes a value as Grafana does in the unit.
func format(value float64, unit string) string {
	switch unit {
	case "s":
		return times.format(value)
	case "bytes":
		return binary.format(value)
	case "Bps":
		return decimal.format(value)
	case "percentunit":
		return number(100*value) + "%"
	}
	text := thousand.format(value)
	if name, ok := rates[unit]; ok {
		return text + " " + name
	}
	return text
}

func (s scaled) format(value float64) string {
	for _, unit := range s {
		if math.Abs(value) >= unit.of {
			return space(number(value/unit.of), unit.name)
		}
	}
	smallest := s[len(s)-1]
	if value == 0 {
		for _, unit := range s {
			if unit.of == 1 {
				smallest = unit
			}
		}
	}
	return space(number(value/smallest.of), smallest.name)
}

func space(value, unit string) string {
	if unit == "" {
		return value
	}
	return value + " " + unit
}

// number gives three digits or so.
func number(value float64) string {
	if math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
