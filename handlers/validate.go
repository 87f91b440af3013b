package handlers

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"licet/licensing"
	"licet/licensing/money"
)

// The limits of inputs. Lengths count Unicode code points.
const (
	maxProductID          = 64
	maxAPIKeyName         = 255
	maxScopes             = 32
	maxDeviceName         = 255
	maxPin                = 255
	maxDescription        = 1000
	maxProductName        = 255
	maxEmail              = 254
	maxWebhookDescription = 255
	maxSuccessURL         = 2000
	maxMetadataName       = 40
	maxMaxDevices         = 1_000_000
	maxRemovals           = 1_000_000
	problemRequired       = "is required"
	problemLineBreaks     = "must not contain control characters other than line breaks and tabs"
	problemControl        = "must not contain control characters"
	problemPast           = "must be in the future"
	problemEmail          = "must be a plain e-mail address of at most 254 characters"
)

// add notes a problem of an input, unless an earlier one is noted.
func (c *problems) add(field, problem string) { c.fields = withProblem(c.fields, field, problem) }

func withProblem(fields []licensing.FieldProblem, field, problem string) []licensing.FieldProblem {
	if slices.ContainsFunc(fields, func(f licensing.FieldProblem) bool { return f.Field == field }) {
		return fields
	}
	return append(fields, licensing.FieldProblem{Field: field, Problem: problem})
}

// licenseKey parses a license key, and returns its canonical text too. A mistyped key wins over all other problems: the
// person at the keyboard can correct it.
func (c *checks) licenseKey(field string, in text) (key licensing.LicenseKey, canonical string) {
	key, canonical, err := c.parsedKey(field, in)
	if err != nil {
		c.refuse(err)
	}
	return key, canonical
}

// parsedKey is licenseKey, except that it returns the error of a text that is no license key.
func (c *checks) parsedKey(field string, in text) (key licensing.LicenseKey, canonical string, err error) {
	switch {
	case c.describe(field, Limits{Required: true, Format: formatLicenseKey}):
	case !in.given:
		c.add(field, problemRequired)
	default:
		return c.server.keys.Parse(in.value)
	}
	return licensing.LicenseKey{}, "", nil
}

// keyFromElsewhere returns the external key that a text may be; empty if the text is a license key or an id of this
// store, or can't be an external key.
func (c *checks) keyFromElsewhere(text string) string {
	key, problem := licensing.ParseExternalKey(text)
	if problem != "" || c.isOurs(key) {
		return ""
	}
	return key
}

// isOurs reports whether a text is a license key or the id of a license of this store.
func (c *checks) isOurs(text string) bool {
	if _, isID := c.server.keys.ParseID(text); isID {
		return true
	}
	_, _, err := c.server.keys.Parse(text)
	return err == nil
}

// externalKey checks an optional external key, and returns the key.
func (c *checks) externalKey(field string, in text) string {
	if c.describe(field, Limits{MinLength: 1, MaxLength: licensing.MaxExternalKey, Pattern: patternOneLine}) ||
		!in.given {
		return ""
	}
	key, problem := licensing.ParseExternalKey(in.value)
	switch {
	case problem != "":
		c.add(field, problem)
	case c.isOurs(key):
		c.add(field, "must be a key of another service: this value is a license key or a license id of this service")
	}
	return key
}

// customerReference checks a shop's name for a customer, in a body or a query.
func (c *rules) customerReference(field string, in text) {
	reference := referenceUpTo(licensing.MaxCustomerReference)
	if !c.describe(field, reference.limits()) && in.given && !reference.valid(in.value) {
		c.add(field, reference.problem())
	}
}

// referenceUpTo is the rule for references: so many characters at most.
type referenceUpTo int

func (most referenceUpTo) limits() Limits {
	return Limits{MinLength: 1, MaxLength: int(most), Pattern: patternOneLine}
}

func (most referenceUpTo) valid(reference string) bool {
	return reference != "" && utf8.RuneCountInString(reference) <= int(most) && utf8.ValidString(reference) &&
		!strings.ContainsFunc(reference, unicode.IsControl)
}

func (most referenceUpTo) problem() string {
	return fmt.Sprintf("must have 1 to %d characters without control characters", most)
}

// license parses the id of a license, or its key. No license of this store has an id that ParseID refuses.
func (c *checks) license(field string, in text) licensing.LicenseKey {
	if c.describe(field, Limits{Required: true, Format: formatLicense}) {
		return licensing.LicenseKey{}
	}
	if !strings.HasPrefix(in.value, licensing.LicenseIDPrefix) {
		key, _ := c.licenseKey(field, in)
		return key
	}
	id, ok := c.server.keys.ParseID(in.value)
	if !ok {
		c.absent = licensing.ErrLicenseNotFound
	}
	return id.Key("")
}

// productID checks the product id of something new.
func (c *rules) productID(field string, in text) {
	switch {
	case c.describe(field, Limits{Required: true, MinLength: 1, MaxLength: maxProductID, Pattern: patternProductID}):
	case !in.given:
		c.add(field, problemRequired)
	case !validProductID(in.value):
		c.add(field, problemProductID())
	}
}

// otherProductID checks the id of a product that may be left out.
func (c *rules) otherProductID(field string, in text) {
	limits := Limits{MinLength: 1, MaxLength: maxProductID, Pattern: patternProductID}
	if !c.describe(field, limits) && in.given && !validProductID(in.value) {
		c.add(field, problemProductID())
	}
}

func problemProductID() string {
	return fmt.Sprintf("must be 1 to %d of the characters A-Z a-z 0-9 . _ -", maxProductID)
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

func (c *rules) deviceID(field string, in text) {
	const most = licensing.MaxDeviceID
	if c.describe(field, Limits{Required: true, MinLength: 1, MaxLength: most, Pattern: patternOneLine}) {
		return
	}
	if !in.given {
		c.add(field, problemRequired)
	} else if problem := licensing.DeviceIDProblem(in.value); problem != "" {
		c.add(field, problem)
	}
}

// line checks an optional text of one line, such as a name.
func (c *rules) line(field string, in text, most int) {
	switch {
	case c.describe(field, Limits{MaxLength: most, Pattern: patternOneLine}):
	case utf8.RuneCountInString(in.value) > most:
		c.add(field, fmt.Sprintf("must have at most %d characters", most))
	case strings.ContainsFunc(in.value, unicode.IsControl):
		c.add(field, problemControl)
	}
}

// pin checks a value that an activation demands of its license. An empty value would demand
// nothing, and an app that was built with an empty setting would not notice.
func (c *rules) pin(field string, in text) {
	switch {
	case c.describe(field, Limits{MinLength: 1, MaxLength: maxPin}):
	case in.given && (in.value == "" || utf8.RuneCountInString(in.value) > maxPin):
		c.add(field, fmt.Sprintf("must have 1 to %d characters, or be left out", maxPin))
	}
}

func (c *rules) integer(field string, in integer, required bool, least, most int64) {
	switch {
	case c.describe(field, Limits{Required: required, Bounded: true, Minimum: least, Maximum: most}):
	case !in.given && required:
		c.add(field, problemRequired)
	case in.given && int64(in.value) < least:
		c.add(field, fmt.Sprintf("must be at least %d", least))
	case in.given && int64(in.value) > most:
		c.add(field, fmt.Sprintf("must be at most %d", most))
	}
}

// currency checks a currency code and returns its canonical form.
func (c *rules) currency(field string, in text) string {
	if c.describe(field, Limits{Required: true, Format: formatCurrency}) {
		return ""
	}
	if !in.given {
		c.add(field, problemRequired)
		return ""
	}
	canonical, ok := money.ParseCurrency(in.value)
	if !ok {
		c.add(field, "must be the ISO 4217 code of a currency, such as USD")
	}
	return canonical
}

// description checks an optional text of several lines.
func (c *rules) description(field string, in text) {
	switch {
	case c.describe(field, Limits{MaxLength: maxDescription, Pattern: patternLines}):
	case utf8.RuneCountInString(in.value) > maxDescription:
		c.add(field, fmt.Sprintf("must have at most %d characters", maxDescription))
	case strings.ContainsFunc(in.value, func(c rune) bool {
		return unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t'
	}):
		c.add(field, problemLineBreaks)
	}
}

// oneOf checks an optional text that must be one of two words.
func (c *rules) oneOf(field string, in text, first, second string) {
	switch {
	case c.describe(field, Limits{Enum: []string{first, second}}):
	case in.given && in.value != first && in.value != second:
		c.add(field, "must be "+first+" or "+second)
	}
}

// email checks that an address is plausible. Only a mail that arrives proves
// more.
func (c *rules) email(field string, in text, required bool) {
	switch {
	case c.describe(field, Limits{Required: required, MaxLength: maxEmail, Format: formatEmail}):
	case !in.given && required:
		c.add(field, problemRequired)
	case in.given && !plausibleEmail(in.value):
		c.add(field, problemEmail)
	}
}

func plausibleEmail(address string) bool {
	if utf8.RuneCountInString(address) > maxEmail {
		return false
	}
	// The parser also accepts "Bob <bob@example.org>" and comments: then the parsed
	// address differs from the text.
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

// successURL checks the address to which a buyer's browser goes after paying, as webhookURL does. Loopback addresses
// are always allowed: they lead to the buyer's own machine.
func (c *checks) successURL(field string, in text) {
	if c.describe(field, Limits{MaxLength: maxSuccessURL, Format: formatURL}) || !in.given {
		return
	}
	if len(in.value) > maxSuccessURL {
		c.add(field, fmt.Sprintf("must have at most %d characters", maxSuccessURL))
		return
	}
	policy := c.server.cfg.Webhooks
	policy.Loopback = true
	if problem := policy.CheckURL(in.value); problem != "" {
		c.add(field, problem)
	}
}

// period parses an optional ISO 8601 duration.
func (c *rules) period(field string, in text) licensing.Period {
	if c.describe(field, Limits{Format: formatDuration}) || !in.given {
		return licensing.Period{}
	}
	period, ok := licensing.ParsePeriod(in.value)
	if !ok || period.IsZero() {
		c.add(field, "must be an ISO 8601 duration of whole numbers, above zero and of up to 1,000 years, "+
			"such as P1Y or P30D")
	}
	return period
}

// future parses an optional timestamp, in whole milliseconds. c.late lists timestamps that have passed.
func (c *checks) future(field string, in text) time.Time {
	t := c.timestamp(field, in)
	if !t.IsZero() && !t.After(c.server.cfg.Node.Now()) {
		c.late = withProblem(c.late, field, problemPast)
	}
	return t
}

// timestamp parses an optional timestamp, in whole milliseconds, which may have passed.
func (c *rules) timestamp(field string, in text) time.Time {
	if c.describe(field, Limits{Format: formatTimestamp}) {
		return time.Time{}
	}
	return c.moment(field, in)
}

// momentOrDay parses an optional timestamp, or a date, which is its first moment in UTC.
func (c *rules) momentOrDay(field string, in text) time.Time {
	if c.describe(field, Limits{Format: formatMoment}) || !in.given {
		return time.Time{}
	}
	t, ok := licensing.ParseMoment(in.value)
	if !ok || t.IsZero() {
		c.add(field, "must be a date such as 2030-12-31, or an RFC 3339 timestamp such as 2030-12-31T23:59:59Z")
	}
	return t
}

// moment parses an optional timestamp, in whole milliseconds.
func (c *rules) moment(field string, in text) time.Time {
	if !in.given {
		return time.Time{}
	}
	t, ok := licensing.ParseTime(in.value)
	if !ok {
		c.add(field, "must be an RFC 3339 timestamp, such as 2030-12-31T23:59:59Z")
		return time.Time{}
	}
	if t.IsZero() {
		// The zero time means no time in all packages below.
		c.add(field, problemPast)
	}
	return t
}
