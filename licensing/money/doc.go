// Package money knows the currencies that orders may use, and writes amounts. An amount is a number of minor units of
// its currency, such as cents.
//
// The map of the package:
//
//	money.go  currencies, their minor units, and amounts as text
package money
