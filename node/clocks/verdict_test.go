package clocks

import (
	"testing"
	"time"
)

const day = 24 * time.Hour

// apart returns the bounds of a clock that is ahead by d, as they are after some rounds.
func apart(d time.Duration) bounds {
	return bounds{least: d - 500*time.Millisecond, most: d + time.Second, known: true}
}

func TestVerdict(t *testing.T) {
	unbounded := bounds{least: -time.Second}
	for name, c := range map[string]struct {
		others []bounds
		want   verdict
	}{
		"alone":                    {nil, agrees},
		"two that agree":           {[]bounds{apart(0)}, agrees},
		"two that differ":          {[]bounds{apart(day)}, undecided},
		"two, one not known yet":   {[]bounds{unbounded}, undecided},
		"three that agree":         {[]bounds{apart(0), apart(time.Second)}, agrees},
		"three, another is ahead":  {[]bounds{apart(0), apart(9 * day)}, agrees},
		"three, another is behind": {[]bounds{apart(-9 * day), apart(0)}, agrees},
		"ahead of two":             {[]bounds{apart(-day), apart(-day)}, differs},
		"behind two":               {[]bounds{apart(day), apart(day + time.Second)}, differs},
		"behind by seconds":        {[]bounds{apart(4 * time.Second), apart(5 * time.Second)}, differs},
		"behind, but not provably": {[]bounds{apart(2 * time.Second), apart(2400 * time.Millisecond)}, undecided},
		"behind by little":         {[]bounds{apart(1400 * time.Millisecond), apart(2 * time.Second)}, agrees},
		"perhaps behind by more":   {[]bounds{apart(1401 * time.Millisecond), apart(2 * time.Second)}, undecided},
		"three that all differ":    {[]bounds{apart(day), apart(2 * day)}, undecided},
		"between two others":       {[]bounds{apart(-day), apart(day)}, undecided},
		"three, one not known":     {[]bounds{apart(0), unbounded}, agrees},
		"three, none known":        {[]bounds{unbounded, unbounded}, undecided},
		"behind one, one unknown":  {[]bounds{apart(day), {least: day}}, undecided},
		"four, two and two":        {[]bounds{apart(0), apart(day), apart(day)}, undecided},
		"four, three differ":       {[]bounds{apart(day), apart(day), apart(day)}, differs},
		"five, two differ":         {[]bounds{apart(0), apart(time.Second), apart(day), apart(-day)}, agrees},
		"five, three differ alike": {[]bounds{apart(0), apart(day), apart(day), apart(day)}, differs},
		"five, three differ": {[]bounds{apart(0), apart(day), apart(-day), apart(3 * day)},
			undecided},
		"bounds that say nothing": {[]bounds{{least: -time.Hour, most: time.Hour, known: true},
			{least: -time.Hour, most: time.Hour, known: true}}, undecided},
		"the end of time": {[]bounds{{least: extreme, most: extreme, known: true},
			{least: extreme, most: extreme, known: true}}, differs},
	} {
		if got := decide(c.others, DefaultTolerance); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
