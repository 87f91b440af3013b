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

// timeFormat is how a timestamp is written: RFC 3339 in UTC, in milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// ParseTime parses an RFC 3339 timestamp up to the year 9999, and cuts it to whole milliseconds of UTC.
func ParseTime(text string) (time.Time, bool) {
	// Go's parser also takes a comma for the point, and one digit of an hour.
	const colonAt = len("2006-01-02T15")
	t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if err != nil || text[colonAt] != ':' || strings.Contains(text, ",") || t.UTC().Year() > lastYear {
		return time.Time{}, false
	}
	return t.UTC().Truncate(time.Millisecond), true
}

// ParseMoment parses a timestamp as ParseTime does, or a date such as 2030-12-31: the first moment of that day in UTC.
func ParseMoment(text string) (time.Time, bool) {
	if len(text) != len(time.DateOnly) {
		return ParseTime(text)
	}
	day, err := time.Parse(time.DateOnly, text)
	return day, err == nil
}

// TimeRange contains the times from From on and before To. A zero From or To bounds nothing.
type TimeRange struct{ From, To time.Time }

// Has reports whether t is in the range. The zero TimeRange has every time, any other has no zero time.
func (r TimeRange) Has(t time.Time) bool {
	if r == (TimeRange{}) {
		return true
	}
	return !t.IsZero() && !t.Before(r.From) && (r.To.IsZero() || t.Before(r.To))
}

// FormatTime returns a timestamp that ParseTime parses.
func FormatTime(t time.Time) string { return t.UTC().Format(timeFormat) }
