package handlers

import (
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"licet/licensing"
)

// The limits of members. Lengths count Unicode code points.
const (
	maxProductID          = 64
	maxDeviceID           = 255
	maxDeviceName         = 255
	maxPin                = 255
	maxDescription        = 1000
	maxProductName        = 255
	maxEmail              = 254
	maxWebhookDescription = 255
	maxSuccessURL         = 2000
	maxAmount             = 1_000_000_000_000
	maxMetadataName       = 40
	maxQuantity           = 1000
	maxMaxDevices         = 1_000_000
	maxRemovals           = 1_000_000
	maxTimestampYear      = 9999
	problemRequired       = "is required"
	problemLineBreaks     = "must not contain control characters other than line breaks and tabs"
	problemControl        = "must not contain control characters"
	problemPast           = "must be in the future"
	problemEmail          = "must be a plain e-mail address of at most 254 characters"
)

// problems collects what is wrong with a request: every bad member, each
// named once.
type problems struct{ fields []licensing.FieldProblem }

func (p *problems) add(field, problem string) {
	if slices.ContainsFunc(p.fields, func(f licensing.FieldProblem) bool { return f.Field == field }) {
		return // the first says enough
	}
	p.fields = append(p.fields, licensing.FieldProblem{Field: field, Problem: problem})
}

// err is nil where there are no problems.
func (p *problems) err() error {
	if len(p.fields) == 0 {
		return nil
	}
	return &licensing.Error{
		Reason:  licensing.ReasonInvalidField,
		Message: "the request has invalid members",
		Fields:  p.fields,
	}
}

// productID checks a product id that is to be used for something new.
func (p *problems) productID(field string, in text) {
	switch {
	case !in.given:
		p.add(field, problemRequired)
	case !validProductID(in.value):
		p.add(field, fmt.Sprintf("must be 1 to %d of the characters A-Z a-z 0-9 . _ -", maxProductID))
	}
}

func validProductID(id string) bool {
	if id == "" || len(id) > maxProductID {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func (p *problems) deviceID(field string, in text) {
	switch {
	case !in.given:
		p.add(field, problemRequired)
	case !utf8.ValidString(in.value):
		p.add(field, "must be UTF-8")
	case in.value == "" || utf8.RuneCountInString(in.value) > maxDeviceID:
		p.add(field, fmt.Sprintf("must have 1 to %d characters", maxDeviceID))
	case strings.ContainsFunc(in.value, unicode.IsControl):
		p.add(field, problemControl)
	}
}

// line checks a text that may be left out and is shown in one line, as names are.
func (p *problems) line(field string, in text, most int) {
	switch {
	case utf8.RuneCountInString(in.value) > most:
		p.add(field, fmt.Sprintf("must have at most %d characters", most))
	case strings.ContainsFunc(in.value, unicode.IsControl):
		p.add(field, problemControl)
	}
}

// pin checks a demand of an activation. An empty one would demand nothing, so
// an app that was built with an empty setting would not notice.
func (p *problems) pin(field string, in text) {
	if in.given && (in.value == "" || utf8.RuneCountInString(in.value) > maxPin) {
		p.add(field, fmt.Sprintf("must have 1 to %d characters, or be left out", maxPin))
	}
}

func (p *problems) amount(field string, in integer) {
	p.integer(field, in, true, 0, maxAmount)
}

func (p *problems) integer(field string, in integer, required bool, least, most int64) {
	switch {
	case !in.given && required:
		p.add(field, problemRequired)
	case in.given && in.value < least:
		p.add(field, fmt.Sprintf("must be at least %d", least))
	case in.given && in.value > most:
		p.add(field, fmt.Sprintf("must be at most %d", most))
	}
}

// currency checks a code and gives its canonical form.
func (p *problems) currency(field string, in text) string {
	if !in.given {
		p.add(field, problemRequired)
		return ""
	}
	canonical, ok := licensing.ParseCurrency(in.value)
	if !ok {
		p.add(field, "must be the ISO 4217 code of a currency, such as USD")
	}
	return canonical
}

func (p *problems) description(field string, in text) {
	switch {
	case utf8.RuneCountInString(in.value) > maxDescription:
		p.add(field, fmt.Sprintf("must have at most %d characters", maxDescription))
	case strings.ContainsFunc(in.value, func(c rune) bool {
		return unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t'
	}):
		p.add(field, problemLineBreaks)
	}
}

// email checks that an address is plausible. Only a mail that arrives proves
// more.
func (p *problems) email(field string, in text) {
	if in.given && !plausibleEmail(in.value) {
		p.add(field, problemEmail)
	}
}

func plausibleEmail(address string) bool {
	if utf8.RuneCountInString(address) > maxEmail {
		return false
	}
	// The parser also takes "Bob <bob@example.org>" and comments: then what it
	// understood is not what was sent.
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Address != address || strings.ContainsFunc(address, unicode.IsControl) {
		return false
	}
	domain := address[strings.LastIndexByte(address, '@')+1:]
	if strings.ContainsAny(domain, "[]") {
		return false
	}
	return strings.EqualFold(domain, "localhost") || strings.Contains(strings.Trim(domain, "."), ".")
}

// successURL checks where a buyer may be sent to: https, or this very machine.
func (p *problems) successURL(field string, in text) {
	if !in.given {
		return
	}
	switch u, err := url.Parse(in.value); {
	case len(in.value) > maxSuccessURL:
		p.add(field, fmt.Sprintf("must have at most %d characters", maxSuccessURL))
	case err != nil, u.Hostname() == "", u.User != nil, strings.ContainsFunc(in.value, notPlainASCII):
		p.add(field, "must be an absolute URL, percent-encoded and without user information")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		p.add(field, "must begin with https:// (http:// is for loopback addresses)")
	}
}

func notPlainASCII(c rune) bool { return c <= ' ' || c >= 0x7f }

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// period reads a length of time.
func (p *problems) period(field string, in text) licensing.Period {
	if !in.given {
		return licensing.Period{}
	}
	period, ok := licensing.ParsePeriod(in.value)
	if !ok || period.IsZero() {
		p.add(field, "must be an ISO 8601 duration of whole numbers, above zero and of up to 1,000 years, such as P1Y or P30D")
	}
	return period
}

// moment reads a point in time, in whole milliseconds.
func (p *problems) moment(field string, in text) time.Time {
	if !in.given {
		return time.Time{}
	}
	// Go's parser also takes a comma for the point, and one digit of an hour.
	const colonAt = len("2006-01-02T15")
	t, err := time.Parse(time.RFC3339, strings.ToUpper(in.value))
	if err != nil || in.value[colonAt] != ':' || strings.Contains(in.value, ",") || t.UTC().Year() > maxTimestampYear {
		p.add(field, "must be an RFC 3339 timestamp, such as 2030-12-31T23:59:59Z")
		return time.Time{}
	}
	t = t.UTC().Truncate(time.Millisecond)
	if t.IsZero() {
		// The first millisecond of the year 1 stands for no time at all, everywhere
		// below. All moments that may be given must be still to come anyway.
		p.add(field, problemPast)
	}
	return t
}

// future checks a moment, where there is one, that must be still to come.
func (p *problems) future(field string, t, now time.Time) {
	if !t.IsZero() && !t.After(now) {
		p.add(field, problemPast)
	}
}
