package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"

	"licet/cmd/licet/internal/terminal"
	"licet/licensing/money"
)

// member is one member of a JSON object. Objects print all their members in the order of the response, so that members
// of later versions show too.
type member struct {
	name  string
	value json.RawMessage
}

// object is a JSON object with its members in order.
type object []member

func parseObject(data json.RawMessage) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("this version of licet does not understand the response: use a newer version")
	}
	var o object
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: fmt.Sprint(name)}
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	return o, nil
}

func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// cell returns the text of a member.
func (o object) cell(name string) string {
	value := o.get(name)
	switch name {
	case "max_devices":
		if string(value) == "0" {
			return "unlimited"
		}
	case "about":
		return o.about()
	case "tries":
		return strconv.Itoa(len(o.attempts()))
	case "last_try":
		return o.lastTry()
	case "result":
		return o.lastResult()
	case "waiting":
		return o.waiting()
	case "amount":
		return amount(value, o.cell("currency"))
	}
	return cell(value)
}

// amount returns an amount in minor units as a decimal number with its currency, independent of the locale.
func amount(value json.RawMessage, currency string) string {
	minor, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || minor < 0 {
		return cell(value)
	}
	return money.Decimal(minor, currency) + " " + currency
}

// timestamp matches a time of the service.
var timestamp = regexp.MustCompile(`^\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// absent is the text of a value that is null or empty.
const absent = "-"

// cell returns the text of a JSON value.
func cell(value json.RawMessage) string {
	var decoded any
	if len(value) == 0 || json.Unmarshal(value, &decoded) != nil {
		return absent
	}
	switch v := decoded.(type) {
	case nil:
		return absent
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case string:
		if v == "" {
			return absent
		}
		if timestamp.MatchString(v) {
			if at, err := time.Parse(time.RFC3339, v); err == nil {
				return at.Format("2006-01-02 15:04:05Z")
			}
		}
		return plain(v)
	case []any:
		return listCell(v, value)
	case map[string]any:
		if len(v) == 0 {
			return absent
		}
	}
	return plain(string(value)) // the text of a number may have more digits than a float64
}

func listCell(items []any, value json.RawMessage) string {
	var words []string
	for _, item := range items {
		switch item := item.(type) {
		case string:
			words = append(words, plain(item))
		case float64:
			words = append(words, strconv.FormatFloat(item, 'f', -1, 64))
		default:
			return plain(string(value))
		}
	}
	if len(words) == 0 {
		return absent
	}
	return strings.Join(words, ",")
}

// plain replaces characters that move the cursor of a terminal or reverse its text.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) ||
			unicode.Is(unicode.Zp, r) {
			return ' '
		}
		return r
	}, text)
}

func title(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "_", " ")) }

// pairs are the lines of an object: a title and a value each.
type pairs struct {
	look  look
	lines [][3]string // name of the member, title, value
}

func (p *pairs) add(name, title, value string) {
	p.lines = append(p.lines, [3]string{name, title, value})
}

// text returns the lines with aligned values.
func (p *pairs) text() string {
	width := 0
	for _, line := range p.lines {
		width = max(width, uniseg.StringWidth(line[1]))
	}
	var text strings.Builder
	for _, line := range p.lines {
		indent := strings.Repeat(" ", width-uniseg.StringWidth(line[1]))
		text.WriteString(p.look.paint("", line[1], terminal.Bold) + indent + gap +
			p.look.paint(line[0], line[2], terminal.Plain) + "\n")
	}
	return text.String()
}

// objectText returns an object with one line for each member, followed by a table for each list of objects, and the
// columns of these tables that do not fit the terminal. On a terminal, members without a value have no line.
func objectText(data json.RawMessage, look look) (lines string, dropped []string, err error) {
	o, err := parseObject(data)
	if err != nil {
		return "", nil, err
	}
	var text strings.Builder
	rows := pairs{look: look}
	var tables []string
	for _, m := range o {
		if items, isList := objects(m.value); isList {
			if len(items) > 0 {
				table, without := itemsText(m.name, items, look)
				tables, dropped = append(tables, table), append(dropped, without...)
			}
			continue
		}
		if strings.HasSuffix(m.name, "next_cursor") && string(m.value) == "null" {
			continue
		}
		if m.name == "delivery" {
			if inner, err := parseObject(m.value); err == nil {
				for _, part := range inner {
					rows.add(part.name, title(m.name)+" "+title(part.name), inner.cell(part.name))
				}
				continue
			}
		}
		if value := o.cell(m.name); value != absent || look.width == 0 {
			rows.add(m.name, title(m.name), value)
		}
	}
	text.WriteString(rows.text())
	for _, table := range tables {
		text.WriteString("\n" + table)
	}
	return text.String(), dropped, nil
}

// objects returns the items of a list of objects, and whether value is such a list.
func objects(value json.RawMessage) (items []object, isList bool) {
	var raw []json.RawMessage
	if len(value) == 0 || value[0] != '[' || json.Unmarshal(value, &raw) != nil {
		return nil, false
	}
	for _, text := range raw {
		o, err := parseObject(text)
		if err != nil {
			return nil, false
		}
		items = append(items, o)
	}
	return items, len(raw) > 0
}

// itemsText returns a table of objects with all members that fit the terminal, and the others.
func itemsText(name string, items []object, look look) (lines string, dropped []string) {
	var text bytes.Buffer
	var columns []string
	for _, m := range items[0] {
		columns = append(columns, m.name)
	}
	t := newTable(&text, columns, look)
	for _, item := range items {
		t.add(item)
	}
	_ = t.flush() // a buffer takes all
	return title(name) + "\n" + text.String(), t.dropped
}
