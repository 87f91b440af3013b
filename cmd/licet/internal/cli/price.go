package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"licet/licensing"
	"licet/licensing/money"
)

// price contains the flags that name the amount of an order: --amount in minor units, or --price with decimals.
type price struct {
	amount   int64
	decimal  string
	currency string
}

// addFlags adds the flags. standard is the amount in minor units without --price and --amount.
func (p *price) addFlags(cmd *cobra.Command, standard int64, currency string) {
	fs := cmd.Flags()
	p.amount = standard
	fs.StringVar(&p.decimal, "price", "",
		"`amount` with decimals: 49.00 with --currency USD, or 4900 with --currency JPY")
	fs.Var(&minorUnits{into: &p.amount, price: true}, "amount",
		"`amount` in minor units of the currency, such as cents: 4900 is 49.00 USD, or 4900 JPY")
	fs.StringVar(&p.currency, "currency", currency, "ISO 4217 `code` of the currency, such as USD")
	cmd.MarkFlagsMutuallyExclusive("price", "amount")
	Complete(cmd, "currency", "USD", "EUR", "GBP", "JPY")
}

// minor returns the amount in minor units.
func (p *price) minor(cmd *cobra.Command) (int64, error) {
	if !cmd.Flags().Changed("price") {
		return p.amount, nil
	}
	code, known := money.ParseCurrency(p.currency)
	if !known {
		return 0, BadUsage("--currency is %q: write an ISO 4217 code such as USD", p.currency)
	}
	digits := money.Exponent(code)
	whole, fraction, pointed := strings.Cut(p.decimal, ".")
	written := whole != "" && (!pointed || fraction != "") && strings.Trim(whole+fraction, "0123456789") == ""
	if !written || len(fraction) > digits {
		return 0, BadUsage("--price is %q: write digits with a point and at most %d decimals for %s, such as %s",
			p.decimal, digits, code, exampleOf(digits))
	}
	minor, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10, 64)
	if err != nil || minor > licensing.MaxAmount {
		most := amount([]byte(strconv.Itoa(licensing.MaxAmount)), code)
		return 0, BadUsage("--price is %q: write at most %s", p.decimal, most)
	}
	return minor, nil
}

// exampleOf returns a price with this number of decimals.
func exampleOf(digits int) string {
	if digits == 0 {
		return "4900"
	}
	return "49." + strings.Repeat("0", digits)
}

// minorUnits is a flag with an amount in minor units.
type minorUnits struct {
	into  *int64
	price bool // the command has a flag --price, too
}

// Set implements pflag.Value.
func (m *minorUnits) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	pointed := strings.Replace(text, ",", ".", 1)
	_, after, comma := strings.Cut(text, ",")
	isPrice := !comma || len(after) == 1 || len(after) == 2 // three digits after a comma may be thousands
	switch _, decimal := strconv.ParseFloat(pointed, 64); {
	case err == nil:
		*m.into = n
		return nil
	case errors.Is(err, strconv.ErrRange):
		return errors.New("write a smaller amount")
	case decimal == nil && m.price && isPrice:
		return fmt.Errorf("an amount is in minor units, such as cents: write --price %s, or --amount 4900 for 49.00",
			pointed)
	case decimal == nil && !m.price:
		return errors.New("an amount is in minor units, such as cents: write --amount 4900 for 49.00 USD, or leave " +
			"--amount out: then it is the amount of the order")
	}
	return errors.New("write an amount in minor units, such as 4900 for 49.00")
}

// String implements pflag.Value.
func (m *minorUnits) String() string {
	if m.into == nil {
		return "0"
	}
	return strconv.FormatInt(*m.into, 10)
}

// Type implements pflag.Value.
func (m *minorUnits) Type() string { return "amount" }
