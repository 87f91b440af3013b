package bulk

import "strings"

// formulaStarts are the first characters of cells that a spreadsheet runs as formulas. A reason can be a text of a
// stranger, and a formula in it would run on the machine of the person who opens the file.
// https://owasp.org/www-community/attacks/CSV_Injection
const formulaStarts = "=+-@\t\r\n＝＋－＠"

func startsFormula(text string) bool {
	return text != "" && strings.ContainsRune(formulaStarts, []rune(text)[0])
}

// guard puts an apostrophe before a text that would run as a formula, and before a text that looks guarded already, so
// that unguard can distinguish them. A spreadsheet that takes semicolons or tabs for separators begins a cell behind
// each, so guard does the same there.
func guard(text string) string {
	text = eachPart(text, func(part string) string {
		if startsFormula(strings.TrimLeft(part, partQuotes)) {
			return "'" + part
		}
		return part
	})
	if startsFormula(strings.TrimLeft(text, "'")) {
		return "'" + text
	}
	return text
}

// unguard removes the apostrophes of guard.
func unguard(text string) string {
	if strings.HasPrefix(text, "'") && startsFormula(strings.TrimLeft(text, "'")) {
		text = text[1:]
	}
	return eachPart(text, func(part string) string {
		if strings.HasPrefix(part, "'") && startsFormula(strings.TrimLeft(part, partQuotes)) {
			return part[1:]
		}
		return part
	})
}

const (
	partSeparators = ";\t"
	// partQuotes are the characters that may stand before a formula at the beginning of a part. A spreadsheet can take
	// the quotation marks of a part for those of a cell.
	partQuotes = `'"`
)

// eachPart replaces each part of a text that follows a separator.
func eachPart(text string, replace func(string) string) string {
	first := strings.IndexAny(text, partSeparators)
	if first < 0 {
		return text
	}
	var out strings.Builder
	out.WriteString(text[:first])
	for text = text[first:]; text != ""; { // begins with a separator
		end := 1 + strings.IndexAny(text[1:], partSeparators)
		if end == 0 {
			end = len(text)
		}
		out.WriteByte(text[0])
		out.WriteString(replace(text[1:end]))
		text = text[end:]
	}
	return out.String()
}
