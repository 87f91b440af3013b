package payment

import "math/bits"

// Share returns part/of of an amount, rounded to the nearest integer. All are positive or 0, and part is at most of.
func Share(part, of, amount int64) int64 {
	if of <= 0 || part >= of {
		return amount
	}
	high, low := bits.Mul64(uint64(part), uint64(amount))
	low, carry := bits.Add64(low, uint64(of)/2, 0)
	share, _ := bits.Div64(high+carry, low, uint64(of))
	return int64(share)
}

// withoutTax returns which part of the price a refund or a dispute at the provider returns. A provider that adds tax to
// the price splits each refund between price and tax in proportion, and so does withoutTax. left is the price less all
// earlier refunds. Each of the earlier refunds may be rounded, so the last refund returns all of left. The result is a
// multiple of the smallest amount of the provider, or else the rest could not go back.
func withoutTax(price int64, refunds int, state State, left int64) int64 {
	if state.Charged <= price {
		return state.Amount
	}
	smallest := max(state.Smallest, 1)
	amount := Share(state.Amount, state.Charged, price/smallest) * smallest
	rounded := int64(refunds) * smallest
	if over := amount - left; over > 0 && over <= rounded || state.AllBack && over < 0 && -over <= rounded {
		return left
	}
	return amount
}
