package stripe

import (
	"errors"
	"fmt"
	"strings"

	"licet/licensing"
	"licet/licensing/money"
)

// The tables follow https://docs.stripe.com/currencies as of July 2026. Certain are the currencies without decimals,
// the special cases (ISK, UGX, HUF, TWD) and the minimums, which the page lists. The page of 2022 is the source of the
// rule for currencies of three decimals; today's page names no such currency, though Stripe still charges in them.
//
// HUF and TWD need no row: Stripe treats them as currencies without decimals for payouts only, and charges two
// decimals. MGA has two decimals in ISO 4217 (one ariary is five iraimbilanja) and none at Stripe.

// zeroDecimal currencies are counted in whole units at Stripe.
const zeroDecimal = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF"

// hundredfold currencies have no decimals, but Stripe counts them in hundredths that must be whole units.
const hundredfold = "ISK UGX"

// threeDecimal currencies are counted in thousandths, of which the last digit must be 0.
const threeDecimal = "BHD JOD KWD OMR TND"

// minimums has the least amounts that Stripe charges, in Stripe's minor units, if the account at Stripe has a bank
// account in the currency. Otherwise the minimum is that of the account's default currency, after conversion: only
// Stripe knows it, and refuses the checkout. Some payment methods take less, such as iDEAL.
var minimums = map[string]int64{
	"AED": 200, "ARS": 50, "AUD": 50, "BRL": 50, "CAD": 50, "CHF": 50, "COP": 50, "CZK": 1500, "DKK": 250, "EUR": 50,
	"GBP": 30, "HKD": 400, "HUF": 17500, "IDR": 50, "ILS": 50, "INR": 50, "JPY": 50, "KRW": 50, "MXN": 1000,
	"MYR": 200, "NOK": 300, "NZD": 50, "PHP": 50, "PLN": 200, "RON": 200, "RUB": 50, "SEK": 300, "SGD": 50,
	"THB": 1000, "USD": 50, "ZAR": 50,
}

// maximum is the most that Stripe charges, in its minor units: 12 digits. Brands of cards and other payment methods
// have lower limits, of 8 digits and more; Stripe then does not offer them to the buyer.
const maximum = 999_999_999_999

var (
	errCurrency = errors.New("can't be charged through Stripe")
	errFraction = errors.New("must be a multiple of the smallest amount that Stripe charges")
)

// exponent returns the number of decimals with which Stripe counts a currency; ok is false if that is not known.
func exponent(currency string) (decimals int, ok bool) {
	switch {
	case strings.Contains(zeroDecimal, currency):
		return 0, true
	case strings.Contains(threeDecimal, currency):
		return 3, true
	}
	return 2, strings.Contains(hundredfold, currency) || money.Exponent(currency) == 2
}

// step returns the smallest difference between two amounts that Stripe charges in a currency, in Stripe's minor units.
func step(currency string) int64 {
	switch {
	case strings.Contains(hundredfold, currency):
		return 100
	case strings.Contains(threeDecimal, currency):
		return 10
	}
	return 1
}

// factors returns by what an amount in our minor units, those of ISO 4217, is multiplied and divided to get Stripe's.
func factors(currency string) (times, by int64, err error) {
	decimals, ok := exponent(currency)
	if !ok {
		return 0, 0, errCurrency
	}
	times, by = 1, 1
	for n := money.Exponent(currency); n < decimals; n++ {
		times *= 10
	}
	for n := decimals; n < money.Exponent(currency); n++ {
		by *= 10
	}
	return times, by, nil
}

// smallest returns the amount in our minor units of which all amounts that Stripe charges in a currency are multiples.
func smallest(currency string) int64 {
	times, by, err := factors(currency)
	if err != nil {
		return 1
	}
	return max(step(currency)*by/times, 1)
}

// toStripe converts an amount of our minor units to Stripe's. The currency is in upper case.
func toStripe(amount int64, currency string) (int64, error) {
	times, by, err := factors(currency)
	if err != nil {
		return 0, err
	}
	if amount%by != 0 || amount/by*times%step(currency) != 0 {
		return 0, errFraction
	}
	return amount / by * times, nil
}

// fromStripe converts an amount of Stripe's minor units to ours. The currency is in upper case.
func fromStripe(amount int64, currency string) (int64, error) {
	times, by, err := factors(currency)
	if err != nil {
		return 0, err
	}
	if amount%times != 0 {
		return 0, errFraction
	}
	return amount / times * by, nil
}

// Accepts implements [payment.Provider].
func (p *Provider) Accepts(order licensing.Order) error {
	times, by, err := factors(order.Currency)
	if err != nil {
		return licensing.InvalidField("currency", order.Currency+" "+err.Error())
	}
	if !order.Interval.IsZero() {
		if _, _, err := recurring(order.Interval); err != nil {
			return licensing.InvalidField("product_id", "must be a product that is billed each number of days, months "+
				"or years, up to 3 years: Stripe can't bill each "+order.Interval.String())
		}
	}
	ours := func(amount int64) int64 { return amount * by / times }
	amount, err := toStripe(order.Amount, order.Currency)
	smallest := step(order.Currency)
	least := max(minimums[order.Currency], smallest)
	switch {
	case err != nil:
		return licensing.InvalidField("amount", fmt.Sprintf(
			"must be a multiple of %d: Stripe charges no smaller parts of %s", ours(smallest), order.Currency))
	case amount < least:
		return licensing.InvalidField("amount", fmt.Sprintf(
			"must be at least %d, the least that Stripe charges in %s", ours(least), order.Currency))
	case amount > maximum:
		return licensing.InvalidField("amount", fmt.Sprintf(
			"must be at most %d, the most that Stripe charges in %s", ours(maximum), order.Currency))
	}
	return nil
}
