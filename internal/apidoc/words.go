package apidoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"licet/internal/apidoc/openapi"
)

// mostWords bounds the words that a table lists. The types of events have a table of their own.
const mostWords = 16

// typeInWords returns the type of a value for people.
func typeInWords(schema *openapi.Schema) string {
	if schema.Ref != "" {
		return "`" + schema.Ref[strings.LastIndex(schema.Ref, "/")+1:] + "`"
	}
	if words := wordsOf(schema); len(words) > 0 && len(words) <= mostWords {
		return strings.Join(words, ", ")
	}
	text := schema.Type[0]
	if text == "array" {
		of := typeInWords(schema.Items)
		text += " of " + of
		if of == "string" || of == "integer" {
			text += "s"
		}
	}
	return text
}

// limitsInWords returns what a value must keep to, for people.
func limitsInWords(schema *openapi.Schema) (limits []string) {
	add := func(format string, values ...any) { limits = append(limits, fmt.Sprintf(format, values...)) }
	if schema.Items != nil && schema.Items.Ref == "" {
		limits = limitsInWords(schema.Items)
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
	if text := between(schema.MinItems, schema.MaxItems); text != "" && schema.MaxItems > 0 {
		add("%s items", text)
	} else if text != "" {
		add("not empty")
	}
	if text := between(0, schema.MaxProperties); text != "" {
		add("%s members", text)
	}
	if schema.PropertyNames != nil {
		names := schema.PropertyNames
		add("names of %s characters", between(names.MinLength, names.MaxLength))
	}
	if schema.Minimum != nil {
		add("%s–%s", grouped(*schema.Minimum), grouped(*schema.Maximum))
	}
	if text := map[string]string{
		"duration": "ISO 8601 duration", "email": "a plain address", "date-time": "RFC 3339",
		"date-or-date-time": "a date (its beginning in UTC), or RFC 3339",
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
func wordsOf(schema *openapi.Schema) (words []string) {
	for _, value := range schema.Enum {
		if value != nil {
			words = append(words, fmt.Sprintf("`%v`", value))
		}
	}
	return words
}

// between returns a range for people; empty: none. A limit of 0 is none.
func between(least, most int) string {
	switch {
	case least > 0 && most > 0:
		return grouped(int64(least)) + "–" + grouped(int64(most))
	case most > 0:
		return "at most " + grouped(int64(most))
	case least > 0:
		return "at least " + grouped(int64(least))
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
