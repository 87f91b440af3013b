package limits

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate allows Count requests at once, and Count more in each Per. A Count of 0 is no limit.
type Rate struct {
	Count int
	Per   time.Duration // in whole seconds
}

const (
	maxCount = 1_000_000
	minPer   = time.Second
	maxPer   = 24 * time.Hour
)

// ErrRate is the error of a text that is no [Rate].
var ErrRate = errors.New("write a rate such as 60/m, 500/s or 100/10s: a count up to 1,000,000, and a time of whole " +
	"seconds up to 24h; 0 means no limit")

// MarshalText implements encoding.TextMarshaler. UnmarshalText reads the same form.
func (r Rate) MarshalText() ([]byte, error) {
	if r.Count == 0 {
		return []byte("0"), nil
	}
	per := r.Per.String()
	switch r.Per {
	case time.Second:
		per = "s"
	case time.Minute:
		per = "m"
	case time.Hour:
		per = "h"
	}
	return fmt.Appendf(nil, "%d/%s", r.Count, per), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It reads a count, a slash and a duration. The
// duration may be a unit alone: 60/m is 60/1m. The text 0 is no limit.
func (r *Rate) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*r = Rate{}
		return nil
	}
	count, per, found := strings.Cut(string(text), "/")
	n, err := strconv.ParseUint(count, 10, 32)
	if !found || err != nil || n < 1 || n > maxCount {
		return ErrRate
	}
	if per == "s" || per == "m" || per == "h" {
		per = "1" + per
	}
	d, err := time.ParseDuration(per)
	if err != nil || d < minPer || d > maxPer || d%time.Second != 0 {
		return ErrRate
	}
	*r = Rate{Count: int(n), Per: d}
	return nil
}

// perSecond returns the number of requests allowed in a second, on average.
func (r Rate) perSecond() float64 { return float64(r.Count) / r.Per.Seconds() }
