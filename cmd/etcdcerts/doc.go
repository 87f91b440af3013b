// Command etcdcerts makes the TLS certificates of an etcd cluster in Kubernetes and keeps them in Secrets: a
// certificate authority (CA) for etcd's clients, a CA for the members among themselves, and the certificates that both
// sign. etcdcerts replaces only what is missing or will expire soon, so it may run at any time: as a Job before the
// members start, and as a CronJob that renews certificates.
//
// Members and nodes read a renewed certificate for each new connection, so nothing restarts. etcdcerts imports only
// Go's standard library. Its tests run it against an API server of their own, over HTTP.
//
// This command only makes certificates: it opens no TLS connection but the one to the API server. Elsewhere:
//
//	cmd/licet         the HTTPS listener of a service (service.go), with the certificate of its flags (certificate.go)
//	node/peer         the TLS keys of nodes, for connections between nodes
//	kv/internal/etcd  TLS of the connections to etcd (connect.go)
//	internal/etcdtest, deploy/k8s/e2e  certificates of test clusters
//
// The map of the package:
//
//	main.go       the program and its flags
//	authority.go  the certificate authorities: issuing a certificate, and whether a stored certificate is still good
//	keep.go       which certificates each Secret contains, and which of them are made anew
//	secrets.go    reading and writing Secrets, through the API server of Kubernetes
package main
