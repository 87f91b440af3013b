package licensing

import (
	"fmt"
	"strings"

	"github.com/bojanz/currency"
)

// ParseCurrency gives the canonical, upper-case form of an ISO 4217 code
// written in any case, and whether an order may be made in it.
//
// What qualifies is ISO's list of codes in force, its fund codes included.
// Metals, testing codes and the like have no minor unit, so they do not. A
// withdrawn currency (BGN, HRK) is refused too, though orders of its time may
// still carry it. So ParseCurrency is for what comes in; what is stored is
// never parsed anew, and the other functions here take any code.
func ParseCurrency(code string) (canonical string, ok bool) {
	if len(code) != 3 { // the library takes the empty code for valid
		return "", false
	}
	canonical = strings.ToUpper(code)
	if !currency.IsValid(canonical) {
		return "", false
	}
	return canonical, true
}

// CurrencyExponent gives the number of decimal digits between a currency and
// its minor unit, which amounts are kept in: 2 for USD, 0 for JPY. It follows
// ISO 4217, whose usual 2 also answers for a code that is no longer in force.
//
// The exponent gives stored amounts their meaning, so it is spelled out here
// and not left to the library's data. That follows ISO too (as of v1.4.2), but
// both it and ISO may change: UGX once had 2 digits, and CLDR, where the
// library's other data comes from, counts the coins in use and gives IQD, RSD
// and LBP none. An upgrade must never turn 12.34 into 1,234 by itself; a test
// tells when library and table part.
func CurrencyExponent(code string) int {
	switch strings.ToUpper(code) {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG",
		"RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	case "CLF", "UYW":
		return 4
	default:
		return 2
	}
}

// FormatAmount writes an amount of minor units for people, as the locale does:
// "$49.00" in "en", "49,00 $" in "de". It is exact, whatever the size. An
// unknown locale counts as English. Parts that belong together are joined by
// no-break spaces, so the text is for a page, not for parsing.
func FormatAmount(minor int64, code, locale string) string {
	l := currency.NewLocale(locale)
	if l.Language == "" { // the library would find no pattern and write nothing
		l = currency.NewLocale("en")
	}
	exponent := CurrencyExponent(code)
	f := currency.NewFormatter(l)
	f.MinDigits, f.MaxDigits = uint8(exponent), uint8(exponent)

	known, ok := ParseCurrency(code)
	if !ok { // withdrawn since: a known currency carries the number under the old name
		known = "USD"
		f.SymbolMap[known] = code
	}
	// It cannot fail: the code is known and the number well-formed. Written with
	// its exponent, it never passes through the library's own idea of digits.
	amount, _ := currency.NewAmount(fmt.Sprintf("%de-%d", minor, exponent), known)
	return f.Format(amount)
}
