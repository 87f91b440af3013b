package apidoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pb33f/libopenapi/datamodel/high/base"
)

// mostWords bounds the words that a table lists. The types of events have a table of their own.
const mostWords = 16

// typeInWords returns the type of a value for people.
func typeInWords(proxy *base.SchemaProxy) string {
	if proxy.IsReference() {
		return "`" + proxy.GetReference()[strings.LastIndex(proxy.GetReference(), "/")+1:] + "`"
	}
	schema := proxy.Schema()
	if words := wordsOf(schema); len(words) > 0 && len(words) <= mostWords {
		return strings.Join(words, ", ")
	}
	text := schema.Type[0]
	if text == "array" {
		of := typeInWords(schema.Items.A)
		text += " of " + of
		if of == "string" {
			text += "s"
		}
	}
	return text
}

// limitsInWords returns what a value must keep to, for people.
func limitsInWords(proxy *base.SchemaProxy) (limits []string) {
	schema := proxy.Schema()
	add := func(format string, values ...any) { limits = append(limits, fmt.Sprintf(format, values...)) }
	if schema.Items != nil && !schema.Items.A.IsReference() {
		limits = limitsInWords(schema.Items.A)
	}
	of, further := patternInWords(schema.Pattern)
	if text := between(schema.MinLength, schema.MaxLength); text != "" {
		add("%s %s", text, of)
	} else if schema.Pattern != "" && further == "" {
		add("%s", of)
	}
	if further != "" {
		add("%s", further)
	}
	if text := between(schema.MinItems, schema.MaxItems); text != "" && schema.MaxItems != nil {
		add("%s items", text)
	} else if text != "" {
		add("not empty")
	}
	if text := between(nil, schema.MaxProperties); text != "" {
		add("%s members", text)
	}
	if schema.PropertyNames != nil {
		names := schema.PropertyNames.Schema()
		add("names of %s characters", between(names.MinLength, names.MaxLength))
	}
	if schema.Minimum != nil {
		least, most := int64(*schema.Minimum), int64(*schema.Maximum)
		add("%s–%s", grouped(least), grouped(most))
	}
	if text := map[string]string{
		"duration": "ISO 8601 duration", "email": "a plain address", "date-time": "RFC 3339",
	}[schema.Format]; text != "" {
		add("%s", text)
	}
	return limits
}

// patternInWords returns what the characters of a text are, and what else the pattern demands of the text.
func patternInWords(pattern string) (of, further string) {
	switch pattern {
	case "":
		return "characters", ""
	case `^\P{Cc}*$`:
		return "characters", "no control characters"
	case `^(\P{Cc}|[\n\r\t])*$`:
		return "characters", "no control characters but line breaks and tabs"
	case `^[A-Za-z0-9._-]+$`:
		return "of `A-Z a-z 0-9 . _ -`", ""
	case `^[A-Z0-9]{2,8}$`:
		return "2–8 of `A-Z 0-9`", ""
	default:
		panic("no words for the pattern " + pattern)
	}
}

// wordsOf returns the words that a value may be.
func wordsOf(schema *base.Schema) (words []string) {
	for _, node := range schema.Enum {
		if node.Tag != "!!null" {
			words = append(words, "`"+node.Value+"`")
		}
	}
	return words
}

// between returns a range for people; empty: none.
func between(least, most *int64) string {
	switch {
	case least != nil && most != nil:
		return grouped(*least) + "–" + grouped(*most)
	case most != nil:
		return "at most " + grouped(*most)
	case least != nil:
		return "at least " + grouped(*least)
	default:
		return ""
	}
}

// grouped writes a number with commas between groups of three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var groups []string
	for len(digits) > 3 {
		groups = append(groups, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	groups = append(groups, digits)
	slices.Reverse(groups)
	return strings.Join(groups, ",")
}
