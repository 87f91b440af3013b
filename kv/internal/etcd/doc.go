// Package etcd asks etcd. [Client] sends every request: it counts the request, bounds its time, traces it,
// and sends nothing while etcd is known to refuse it. It also monitors the members of the cluster, and says
// of each failure whether the request may have been executed. It returns etcd's
// own responses and knows no record: packages kv, kv/deliveries and kv/verify decode them.
//
// # Files
//
//	client.go     Client: reads and transactions
//	resolve.go    a transaction that is sent until its outcome is known
//	failure.go    what a failure says of a request's effect
//	pause.go      the pause before a request is sent again
//	slots.go      pages of a family in all slots
//	request.go    requests of the hot path, as etcd's own messages
//	lease.go      work under a lease
//	watch.go      wake-ups when a key changes
//	trace.go      spans of requests
//	connect.go    connections: TLS, keepalive, balancing
//	oldlayout.go  refusing stores of an earlier layout
//	members.go    which members answer, and where requests go
//	memberlog.go  what the log says of members
//	barred.go     no request while no member may be asked
//	unreadable.go values that can't be read
//	space.go      the reserve of an almost full etcd, and no write while etcd is full
package etcd
