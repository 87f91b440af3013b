package money

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bojanz/currency"
)

// exponents is ISO 4217 as of 2026, by minor-unit exponent. It is the list of
// currencies that orders may be made in, so a code that comes or goes with an
// upgrade of the library shows as a diff here.
var exponents = map[int]string{
	0: `BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF`,
	2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL
		BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK
		DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD
		HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR
		LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN
		NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR
		SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT
		TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER
		ZAR ZMW ZWG`,
	3: `BHD IQD JOD KWD LYD OMR TND`,
	4: `CLF UYW`,
}

func TestExponentOfEveryCode(t *testing.T) {
	var listed []string
	for exponent, codes := range exponents {
		for _, code := range strings.Fields(codes) {
			listed = append(listed, code)
			if got := Exponent(code); got != exponent {
				t.Errorf("Exponent(%s) = %d, want %d", code, got, exponent)
			}
			if got := Exponent(strings.ToLower(code)); got != exponent {
				t.Errorf("Exponent(%s) = %d, want %d", strings.ToLower(code), got, exponent)
			}
			if digits, ok := currency.GetDigits(code); !ok || int(digits) != exponent {
				t.Errorf("the library gives %s %d digits (known: %v), want %d", code, digits, ok, exponent)
			}
		}
	}
	known := slices.Sorted(slices.Values(currency.GetCurrencyCodes()))
	slices.Sort(listed)
	if !slices.Equal(listed, known) {
		t.Errorf("the currencies of the library changed:\n got %v\nwant %v", known, listed)
	}
}

func TestExponentOfWithdrawnCode(t *testing.T) {
	for _, code := range []string{"BGN", "HRK", "ZZZ", ""} {
		if got := Exponent(code); got != 2 {
			t.Errorf("Exponent(%q) = %d, want 2", code, got)
		}
	}
}

func TestParseCurrency(t *testing.T) {
	accepts := func(code, want string) {
		t.Helper()
		if got, ok := ParseCurrency(code); got != want || !ok {
			t.Errorf("ParseCurrency(%q) = %q, %v, want %q", code, got, ok, want)
		}
	}
	for _, code := range currency.GetCurrencyCodes() {
		accepts(code, code)
		accepts(strings.ToLower(code), code)
	}
	accepts("uSd", "USD")

	refuses := func(codes ...string) {
		t.Helper()
		for _, code := range codes {
			if got, ok := ParseCurrency(code); got != "" || ok {
				t.Errorf("ParseCurrency(%q) = %q, %v, want a refusal", code, got, ok)
			}
		}
	}
	refuses("", "US", "USDT", " USD", "USD ", "U D", "840", "$", "ZZZ")
	refuses("XAU", "XDR", "XTS", "XXX")                             // no minor unit
	refuses("DEM", "HRK", "BGN", "ANG", "ZWL", "SLL", "CUC", "VEF") // withdrawn
	refuses("uſd", "ıqd", "ＵＳＤ", "\xffSD", "US\x00")                // letters that only look or fold like it
}

func TestFormat(t *testing.T) {
	f := func(minor int64, code, locale, want string) {
		t.Helper()
		if got := Format(minor, code, locale); got != want {
			t.Errorf("Format(%d, %q, %q) = %q, want %q", minor, code, locale, got, want)
		}
	}
	f(4900, "USD", "en", "$49.00")
	f(4900, "usd", "en", "$49.00")
	f(0, "USD", "en", "$0.00")
	f(5, "USD", "en", "$0.05")
	f(500, "JPY", "en", "¥500")
	f(0, "JPY", "en", "¥0")
	f(1234, "KWD", "en", "KWD\u00a01.234")
	f(1, "CLF", "en", "CLF\u00a00.0001")

	// Currencies whose minor unit CLDR leaves out.
	f(1234, "IQD", "en", "IQD\u00a01.234")
	f(1234, "RSD", "en", "RSD\u00a012.34")
	f(1234, "LBP", "en", "LBP\u00a012.34")

	// Nothing is lost at the largest amount of an order, nor beyond.
	f(1e12, "USD", "en", "$10,000,000,000.00")
	f(1e12-1, "USD", "en", "$9,999,999,999.99")
	f(1e12-1, "JPY", "en", "¥999,999,999,999")
	f(1e12-1, "UYW", "en", "UYW\u00a099,999,999.9999")
	f(math.MaxInt64, "IQD", "en", "IQD\u00a09,223,372,036,854,775.807")
	f(-4900, "USD", "en", "-$49.00")

	// Locales, and what passes for one.
	f(123456789, "EUR", "de", "1.234.567,89\u00a0€")
	f(123456789, "INR", "en-IN", "₹12,34,567.89")
	f(4900, "USD", "", "$49.00")
	f(4900, "USD", "tlh", "$49.00")
	f(4900, "USD", "-US", "$49.00")

	// Orders outlive currencies.
	f(1234, "BGN", "en", "BGN\u00a012.34")
	f(1234, "BGN", "de", "12,34\u00a0BGN")
	f(1234, "", "en", "12.34")
}

// Every currency shows all digits of its minor unit, no more and no fewer.
func TestFormatOfEveryCode(t *testing.T) {
	for _, code := range currency.GetCurrencyCodes() {
		for _, locale := range []string{"en", "de", "ar", "fa", "hi", "sr-Latn"} {
			got := Format(123456789012, code, locale)
			if got == "" || !utf8.ValidString(got) {
				t.Fatalf("Format of %s in %s = %q", code, locale, got)
			}
			if locale != "en" {
				continue
			}
			digits := strings.Map(func(r rune) rune {
				if r < '0' || r > '9' {
					return -1
				}
				return r
			}, got)
			tail := map[int]string{0: ",012", 2: ".12", 3: ".012", 4: ".9012"}[Exponent(code)]
			if digits != "123456789012" || !strings.HasSuffix(got, tail) {
				t.Errorf("Format of %s = %q", code, got)
			}
		}
	}
}

func TestDecimal(t *testing.T) {
	for want, of := range map[string]struct {
		minor int64
		code  string
	}{
		"49.05": {4905, "USD"}, "0.00": {0, "EUR"}, "0.07": {7, "usd"}, "-0.07": {-7, "USD"}, "4900": {4900, "JPY"},
		"0": {0, "JPY"}, "-5": {-5, "JPY"}, "0.007": {7, "KWD"}, "1.0000": {10000, "CLF"},
		"-92233720368547758.08": {math.MinInt64, "USD"},
	} {
		if got := Decimal(of.minor, of.code); got != want {
			t.Errorf("%d %s is %s, want %s", of.minor, of.code, got, want)
		}
	}
}
