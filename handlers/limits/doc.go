// Package limits limits the rate of requests. Each limit counts requests by client address, account
// or license key, with a token bucket for each that it has seen lately. Each process counts for
// itself, and stores nothing.
//
// Package handlers decides which requests count, and what a client learns about its limits. Flags set the rates in
// package cmd/licet. Not here: how many commands run at a time, and how much a license or an account may change or
// store. The doc of package node lists all limits.
//
// Files:
//
//   - limits.go: the limits of a process, and what a request counts as
//   - buckets.go: the token buckets of one limit, bounded in number
//   - rate.go: reads and writes rates such as 60/m
//   - client.go: the address of a client behind proxies
package limits
