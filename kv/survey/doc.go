// Package survey asks the members of an etcd cluster and the store for the facts that licet doctor checks. It checks
// nothing: the findings are in package cmd/licet/internal/doctor. Its one write is a small key of its own, under a
// lease and removed at once, to measure how long a put takes.
//
//	survey.go   a survey: members, latency
//	member.go   what one member says, over gRPC and HTTP
//	content.go  what the store contains
package survey
