// Command etcdcerts makes the TLS certificates of an etcd cluster in Kubernetes and keeps them in Secrets: a
// certificate authority (CA) for etcd's clients, a CA for the members among themselves, and the certificates that both
// sign. etcdcerts replaces only what is missing or will expire soon, so it may run at any time: as a Job before the
// members start, and as a CronJob that renews certificates.
//
// Members and nodes read a renewed certificate for each new connection, so nothing restarts. etcdcerts imports only
// Go's standard library. Its tests run it against an API server of their own, over HTTP.
//
// The map of the package:
//
//	main.go       the program and its flags
//	authority.go  the certificate authorities, and what they sign
//	keep.go       which Secrets are written, and when
//	secrets.go    Secrets, through the API server of Kubernetes
package main
