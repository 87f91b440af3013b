package licensing

import (
	"strings"
	"time"
)

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

// TimeRange holds the times from From on and before To. A zero From or To bounds nothing.
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
