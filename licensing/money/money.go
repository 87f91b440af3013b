package money

import (
	"fmt"
	"strings"

	"github.com/bojanz/currency"
)

// ParseCurrency returns the canonical, upper-case form of an ISO 4217 code in any case, and reports
// whether an order may use the currency.
//
// Orders may use the codes that ISO lists as in force, including fund codes. Metals, testing codes and
// the like have no minor unit, so orders can't use them. Orders can't use a withdrawn currency (BGN,
// HRK) either, though old orders may have it. So use ParseCurrency for input only. Stored codes are
// never parsed again, and the other functions here take any code.
func ParseCurrency(code string) (canonical string, ok bool) {
	if len(code) != 3 { // the library considers the empty code valid
		return "", false
	}
	canonical = strings.ToUpper(code)
	if !currency.IsValid(canonical) {
		return "", false
	}
	return canonical, true
}

// Exponent returns the number of decimal digits between a currency and its minor unit, in
// which amounts are stored: 2 for USD, 0 for JPY. It follows ISO 4217. For a code that is no longer in
// force it returns 2, the usual number.
//
// The exponent gives stored amounts their meaning, so this table has it and not the library's data.
// The library follows ISO too (as of v1.4.2), but both may change: UGX once had 2 digits. CLDR, the
// source of the library's other data, counts the coins in use and gives IQD, RSD and LBP no digits. An
// upgrade must never turn 12.34 into 1,234. A test fails when the library and the table differ.
func Exponent(code string) int {
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

// Decimal returns an amount of minor units as a decimal number, independent of the locale: 49.00 for USD, 4900
// for JPY.
func Decimal(minor int64, code string) string {
	digits, magnitude, sign := Exponent(code), uint64(minor), ""
	if minor < 0 {
		magnitude, sign = -magnitude, "-"
	}
	text := fmt.Sprintf("%0*d", digits+1, magnitude)
	if digits > 0 {
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	return sign + text
}

// Format formats an amount of minor units for people, as the locale does: "$49.00" in "en",
// "49,00 $" in "de". It is exact for any size. An unknown locale is treated as English. The text
// contains no-break spaces: it is for display, not for parsing.
func Format(minor int64, code, locale string) string {
	l := currency.NewLocale(locale)
	if l.Language == "" { // the library would find no pattern and return ""
		l = currency.NewLocale("en")
	}
	exponent := Exponent(code)
	f := currency.NewFormatter(l)
	f.MinDigits, f.MaxDigits = uint8(exponent), uint8(exponent)

	known, ok := ParseCurrency(code)
	if !ok { // withdrawn: format as a known currency with the old code as its symbol
		known = "USD"
		f.SymbolMap[known] = code
	}
	// NewAmount can't fail: the code is known and the number is well-formed. The number has an explicit exponent,
	// so the library's own number of digits does not matter.
	amount, _ := currency.NewAmount(fmt.Sprintf("%de-%d", minor, exponent), known)
	return f.Format(amount)
}
