// Package connection stands between the network and fasthttp. It refuses what
// fasthttp would read but other servers may read otherwise, and it saves what
// fasthttp would spend on idle connections and on requests that are refused.
//
// Package handlers imports this package, and routing begins only there. So this
// package has a small table of errors of its own.
package connection
