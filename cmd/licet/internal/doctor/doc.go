// Package doctor finds what is wrong with a service, its etcd and the settings around them, and says what to do. It
// checks facts: package kv/survey collects those of etcd, and a call over HTTP those of a service. The flags of licet
// doctor are in package cmd/licet. Contradictions within a store are for kv/verify.
//
//	finding.go   findings and their output
//	etcd.go      findings about the members of etcd
//	store.go     findings about the content of the store
//	service.go   findings about a service, as its clients see it
//	tls.go       findings about certificates that this machine does not accept
//	settings.go  findings about environment variables, and about settings of licet serve
package doctor
