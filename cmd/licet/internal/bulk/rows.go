package bulk

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"licet/client"
	"licet/licensing"
)

// Limits of the service, see docs/reference/api.md. The service would refuse other values too, but row by row, after it
// has executed earlier rows.
const (
	maxProductID  = 64
	maxQuantity   = 1_000
	maxMaxDevices = 1_000_000
	maxReason     = 1_000
	maxEmail      = 254
)

// row is one row of a file: licenses to grant, or a license to change.
type row struct {
	*record
	index int // of the row, from 0
	hash  [sha256.Size]byte

	others     []string // the other cells, for the results
	id         string   // of the license to change
	licenseKey string   // of the license to change; empty along with id: grant licenses
	grant      client.Grant
	devices    []string // to bind to the granted license
	state      string   // of the granted license: suspended, revoked, or empty for any other
	reason     string   // for the state
	maxDevices *int     // nil: unchanged
	expiresAt  time.Time
	metadata   object
	// entitlements of the license's own: to grant with, or to change
	entitlements object
	email        string // of the buyer, to grant with or to change; empty: none, or unchanged
	reference    string // of the customer, to grant with or to change; empty: none, or unchanged
}

// changes reports whether the row changes a license, instead of granting licenses.
func (r *row) changes() bool { return r.id != "" || r.licenseKey != "" }

// rules validates records and converts them to rows.
type rules struct {
	table *table
	rows  int
	after time.Time        // granted licenses must expire after it; zero: no check
	seen  map[string]int32 // the line of each id and license key, which must be unique; nil: no check
	keys  map[string]int32 // the line of each external key, which must be unique too
	// matching says which external keys are the same.
	matching licensing.KeyMatching
}

// next reads the next row, with its problems.
func (r *rules) next() (*row, []Problem, error) {
	rec, problems, err := r.table.next()
	if err != nil {
		return nil, nil, err
	}
	made := &row{record: rec, index: r.rows, hash: contentHash(rec.cells)}
	r.rows++
	if len(problems) > 0 {
		return made, problems, nil
	}
	made.others = r.table.others(rec.cells)
	c := cells{table: r.table, record: rec}
	r.read(&c, made)
	slices.SortStableFunc(c.problems,
		func(a, b Problem) int { return cmp.Compare(r.table.at[a.Column], r.table.at[b.Column]) })
	return made, c.problems, nil
}

// contentHash returns a hash of the cells of a row.
func contentHash(cells []string) (hash [sha256.Size]byte) {
	sum := sha256.New()
	var length [8]byte
	for _, cell := range cells {
		binary.BigEndian.PutUint64(length[:], uint64(len(cell)))
		sum.Write(length[:])
		sum.Write([]byte(cell))
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

func (r *rules) read(c *cells, into *row) {
	into.maxDevices = c.integer(maxDevicesColumn, 0, maxMaxDevices)
	into.expiresAt = c.moment(expiresAtColumn)
	into.entitlements = c.entitlements()
	into.email = c.line(buyerEmailColumn, maxEmail)
	into.reference = c.line(referenceColumn, licensing.MaxCustomerReference)
	if id, key := c.text(idColumn), c.text(licenseKeyColumn); id != "" || key != "" {
		into.id, into.licenseKey = c.id(id), c.licenseKey(key)
		into.metadata = c.metadata(true)
		if c.text(quantityColumn) != "" {
			c.bad(quantityColumn, "must be empty in a row with license_key or id, which grants no license")
		}
		if c.text(devicesColumn) != "" {
			c.bad(devicesColumn, "must be empty in a row with license_key or id, which binds no device")
		}
		c.once(r.seen, into.id, idColumn, "only one row may change a license")
		c.once(r.seen, into.licenseKey, licenseKeyColumn, "only one row may change a license")
		return
	}
	into.metadata = c.metadata(false)
	into.grant = client.Grant{ProductID: c.productID(), Quantity: 1, MaxDevices: into.maxDevices,
		ExpiresAt: into.expiresAt, BuyerEmail: into.email, CustomerReference: into.reference}
	if into.metadata != nil {
		into.grant.Metadata = into.metadata.raw()
	}
	if into.entitlements != nil {
		into.grant.Entitlements = into.entitlements.raw()
	}
	if quantity := c.integer(quantityColumn, 1, maxQuantity); quantity != nil {
		into.grant.Quantity = *quantity
	}
	into.grant.ExternalKey = r.externalKey(c)
	r.once(c, r.keys, into.grant.ExternalKey)
	r.readState(c, into)
	if into.grant.Quantity > 1 && (into.grant.ExternalKey != "" || into.devices != nil || into.state != "") {
		c.bad(quantityColumn, "must be 1 or empty in a row with an external key, devices or a state")
	}
	if passed := !r.after.IsZero() && !into.expiresAt.IsZero() && !into.expiresAt.After(r.after); passed &&
		into.grant.ExternalKey == "" {
		c.bad(expiresAtColumn, "must be in the future in a row without external_key")
	}
}

// externalKey parses the external key of a row.
func (r *rules) externalKey(c *cells) string {
	text := c.text(externalKeyColumn)
	if text == "" {
		return ""
	}
	key, problem := licensing.ParseExternalKey(text)
	if problem == "" && r.matching.Of(key) == "" {
		problem = licensing.ErrExternalKeyEmpty.Fields[0].Problem
	}
	if problem != "" {
		c.bad(externalKeyColumn, "%s", problem)
		return ""
	}
	return key
}

// once demands that an external key is in one row only. seen is like that of cells.once.
func (r *rules) once(c *cells, seen map[string]int32, key string) {
	c.once(seen, r.matching.Of(key), externalKeyColumn, "an external key belongs to one license")
}

// readState reads what the license of a row gets after it was granted.
func (r *rules) readState(c *cells, into *row) {
	if text := c.text(devicesColumn); text != "" {
		if err := json.Unmarshal([]byte(text), &into.devices); err != nil || into.devices == nil {
			c.bad(devicesColumn, `must be a JSON array of device ids, such as ["laptop-1"]`)
			into.devices = nil
		}
		for _, id := range into.devices {
			if problem := licensing.DeviceIDProblem(id); problem != "" {
				c.bad(devicesColumn, "has the device id %q, which %s", short(id), problem)
			}
		}
	}
	if state := c.text(statusColumn); state == Suspended || state == Revoked {
		into.state, into.reason = state, c.line(stateReasonColumn, maxReason)
	}
}

// The states that a row can give to a license that it grants.
const (
	Suspended = "suspended"
	Revoked   = "revoked"
)

// cells parses the cells of one row and collects their problems.
type cells struct {
	table    *table
	record   *record
	problems []Problem
}

func (c *cells) bad(column, format string, args ...any) {
	c.problems = append(c.problems, Problem{c.table.line(c.record, column), column, fmt.Sprintf(format, args...)})
}

func (c *cells) text(column string) string { return c.table.cell(c.record, column) }

// line parses a text of bounded length.
func (c *cells) line(column string, most int) string {
	text := c.text(column)
	if utf8.RuneCountInString(text) > most {
		c.bad(column, "must have at most %d characters", most)
	}
	return text
}

// once demands that a value is in one row only. seen has the lines of the values of the earlier rows; nil: no check.
func (c *cells) once(seen map[string]int32, value, column, why string) {
	if seen == nil || value == "" {
		return
	}
	if line, twice := seen[value]; twice {
		c.bad(column, "is also in line %d: %s", line, why)
		return
	}
	seen[value] = int32(c.record.line)
}

func (c *cells) integer(column string, least, most int) *int {
	text := c.text(column)
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most || strings.HasPrefix(text, "+") {
		c.bad(column, "is %q: write an integer from %d to %d, without separators", short(text), least, most)
		return nil
	}
	return &n
}

// moment parses a time with the precision of the service, a millisecond.
func (c *cells) moment(column string) time.Time {
	text := c.text(column)
	if text == "" {
		return time.Time{}
	}
	const colonAt = len("2006-01-02T15")
	t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if err != nil || text[colonAt] != ':' || strings.Contains(text, ",") || t.UTC().Year() > 9999 {
		c.bad(column, "is %q: write a time such as 2031-01-01T00:00:00Z", short(text))
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

func (c *cells) productID() string {
	text := c.text(productIDColumn)
	switch {
	case text == "":
		c.bad(productIDColumn,
			"must name the product of the licenses to grant; to change a license instead, write its id or license_key")
	case len(text) > maxProductID || strings.ContainsFunc(text, notInProductID):
		c.bad(productIDColumn, "is %q: write 1 to %d of the characters A-Z a-z 0-9 . _ -", short(text), maxProductID)
	}
	return text
}

func notInProductID(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// id validates the id of a license, except that only the service knows its ids.
func (c *cells) id(text string) string {
	if text != "" && !licensing.IsLicenseID(text) {
		c.bad(idColumn,
			"must be the id of a license such as lic_77vwt5zc5zqn856r8rb6xh0hgc, or empty to grant licenses")
		return ""
	}
	return text
}

// licenseKey validates a license key, except for its check characters, which only the service can verify. Messages do
// not quote the license key, which is a secret.
func (c *cells) licenseKey(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text)
	prefix, body, _ := strings.Cut(text, "-")
	good := len(prefix) >= 2 && len(prefix) <= 8 && !strings.ContainsFunc(prefix, notUpperOrDigit) &&
		len(body) == len("00000-00000-00000-00000-00000")
	body = strings.NewReplacer("O", "0", "I", "1", "L", "1").Replace(body)
	for i := range len(body) {
		good = good && (i%6 == 5) == (body[i] == '-') &&
			(body[i] == '-' || strings.IndexByte("0123456789ABCDEFGHJKMNPQRSTVWXYZ", body[i]) >= 0)
	}
	if !good {
		c.bad(licenseKeyColumn,
			"must be a license key such as LIC-00000-00000-00000-00000-00000, or empty to grant licenses")
		return ""
	}
	return prefix + "-" + body
}

func notUpperOrDigit(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }

// short truncates a long cell for a message.
func short(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}
