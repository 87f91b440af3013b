package bulk

import "strings"

// formulaStarts are the characters that a cell begins with which a spreadsheet
// would run as a formula. A reason or a product id may be somebody else's text,
// and a formula in it would run on the machine of whoever opens the file.
// https://owasp.org/www-community/attacks/CSV_Injection
const formulaStarts = "=+-@\t\r\n＝＋－＠"

func startsFormula(text string) bool {
	return text != "" && strings.ContainsRune(formulaStarts, []rune(text)[0])
}

// guard puts an apostrophe before text that would run as a formula, and before
// text that looks as if that had been done, so that unguard can tell them apart.
func guard(text string) string {
	if startsFormula(strings.TrimLeft(text, "'")) {
		return "'" + text
	}
	return text
}

// unguard takes away what guard has put there.
func unguard(text string) string {
	if strings.HasPrefix(text, "'") && startsFormula(strings.TrimLeft(text, "'")) {
		return text[1:]
	}
	return text
}
