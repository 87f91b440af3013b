package licensing

import (
	"strconv"
	"strings"
	"time"
)

// Period is a calendar length of time, as in ISO 8601 durations: P1Y, P1M, PT24H. The zero Period is
// no period.
type Period struct {
	Years, Months, Days int
	Clock               time.Duration
}

// IsZero reports whether p is no period.
func (p Period) IsZero() bool { return p == Period{} }

// AddTo returns the moment p after t in UTC. Years and months keep the day of the month, or use the
// last day of a shorter month: January 31 and one month is the last of February, as subscribers
// expect.
func (p Period) AddTo(t time.Time) time.Time {
	t = t.UTC()
	year, month, day := t.Date()
	first := time.Date(year, month, 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	first = first.AddDate(p.Years, p.Months, 0)
	lastDay := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(day, lastDay)-1+p.Days).Add(p.Clock)
}

// Before returns the moment p before t in UTC, by the same rules as AddTo.
func (p Period) Before(t time.Time) time.Time {
	return p.Times(-1).AddTo(t)
}

// Times returns n periods after each other. Months keep the day of the month of the first, see AddTo.
func (p Period) Times(n int) Period {
	return Period{Years: n * p.Years, Months: n * p.Months, Days: n * p.Days, Clock: time.Duration(n) * p.Clock}
}

// Limits of a period: a longer one is a typo.
const (
	maxPeriodYears  = 1000
	maxPeriodMonths = 12 * maxPeriodYears
	maxPeriodDays   = 366 * maxPeriodYears
	maxPeriodClock  = 100 * 366 * 24 * time.Hour
)

// ParsePeriod parses an ISO 8601 duration of whole numbers, such as P1Y, P2W or P1DT12H, of up to
// 1,000 years, and up to 100 years in hours, minutes and seconds.
func ParsePeriod(text string) (Period, bool) {
	date, clock, timed := strings.Cut(text, "T")
	date, found := strings.CutPrefix(date, "P")
	if !found || timed && clock == "" || !timed && date == "" {
		return Period{}, false
	}
	days, daysOK := amounts(date, "YMWD")
	hours, hoursOK := amounts(clock, "HMS")
	p := Period{Years: days[0], Months: days[1], Days: 7*days[2] + days[3]}
	seconds := 3600*hours[0] + 60*hours[1] + hours[2]
	if !daysOK || !hoursOK || seconds > int(maxPeriodClock/time.Second) ||
		p.Years > maxPeriodYears || p.Months > maxPeriodMonths || p.Days > maxPeriodDays {
		return Period{}, false
	}
	p.Clock = time.Duration(seconds) * time.Second
	return p, true
}

// amounts parses numbers, each followed by the letter of its unit. The units must be in order, each at
// most once.
func amounts(text, units string) (of [4]int, ok bool) {
	for at := 0; text != ""; at++ {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		if digits == 0 || digits > 9 || digits == len(text) {
			return of, false
		}
		skip := strings.IndexByte(units[at:], text[digits])
		if skip < 0 {
			return of, false
		}
		at += skip
		of[at], _ = strconv.Atoi(text[:digits]) // nine digits always fit
		text = text[digits+1:]
	}
	return of, true
}

// String formats p as ISO 8601 does; "" for the zero period. Weeks become days.
func (p Period) String() string {
	if p.IsZero() {
		return ""
	}
	text := []byte("P")
	add := func(n int, unit byte) {
		if n != 0 {
			text = append(strconv.AppendInt(text, int64(n), 10), unit)
		}
	}
	add(p.Years, 'Y')
	add(p.Months, 'M')
	add(p.Days, 'D')
	if p.Clock != 0 {
		text = append(text, 'T')
	}
	add(int(p.Clock/time.Hour), 'H')
	add(int(p.Clock%time.Hour/time.Minute), 'M')
	add(int(p.Clock%time.Minute/time.Second), 'S')
	return string(text)
}
