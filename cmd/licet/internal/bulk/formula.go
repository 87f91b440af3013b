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
// that unguard can distinguish them.
func guard(text string) string {
	if startsFormula(strings.TrimLeft(text, "'")) {
		return "'" + text
	}
	return text
}

// unguard removes the apostrophe of guard.
func unguard(text string) string {
	if strings.HasPrefix(text, "'") && startsFormula(strings.TrimLeft(text, "'")) {
		return text[1:]
	}
	return text
}
