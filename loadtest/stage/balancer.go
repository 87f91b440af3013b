package stage

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Balancer stands in front of the nodes and sends each request to one of them at random,
// so one node often continues what another has begun. It tries another node if a
// connection is refused. The client deals with any other failure, as behind any balancer.
type Balancer struct {
	nodes     []string // addresses
	transport *http.Transport

	sent       []atomic.Int64 // requests by node
	unanswered atomic.Int64   // requests that were sent, and got none
	moved      atomic.Int64   // refused by one node, and served by another
}

const connections = 64

func newBalancer(nodes []string) *Balancer {
	return &Balancer{
		nodes: nodes,
		sent:  make([]atomic.Int64, len(nodes)),
		transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			MaxIdleConnsPerHost: connections,
			IdleConnTimeout:     30 * time.Second,
		},
	}
}

// aim is the context key of the node that requests are for.
type aim struct{}

// Toward returns a context whose requests one node serves, while it is up.
func Toward(ctx context.Context, node int) context.Context {
	return context.WithValue(ctx, aim{}, node)
}

// RoundTrip implements http.RoundTripper.
func (b *Balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	node, aimed := r.Context().Value(aim{}).(int)
	if !aimed {
		node = rand.IntN(len(b.nodes))
	}
	node %= len(b.nodes)
	response, err := b.send(r, node)
	for range len(b.nodes) - 1 {
		if !refusedConnection(err) {
			break
		}
		node = (node + 1) % len(b.nodes)
		b.moved.Add(1)
		response, err = b.send(r, node)
	}
	if err != nil && !refusedConnection(err) {
		b.unanswered.Add(1)
	}
	return response, err
}

func (b *Balancer) send(r *http.Request, node int) (*http.Response, error) {
	b.sent[node].Add(1)
	to := r.Clone(r.Context())
	if r.GetBody != nil { // the try before may have read some of it
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		to.Body = body
	}
	if to.Host == "" {
		to.Host = r.URL.Host
	}
	to.URL.Host = b.nodes[node]
	return b.transport.RoundTrip(to)
}

// refusedConnection reports whether a request was never sent.
func refusedConnection(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// Traffic is what a balancer has counted.
type Traffic struct {
	Sent       []int64 // requests by node
	Unanswered int64   // that were sent, and got no answer
	Moved      int64   // refused by one node, and served by another
}

// Traffic returns the counts so far.
func (b *Balancer) Traffic() Traffic {
	t := Traffic{Unanswered: b.unanswered.Load(), Moved: b.moved.Load()}
	for i := range b.sent {
		t.Sent = append(t.Sent, b.sent[i].Load())
	}
	return t
}

// CloseIdleConnections lets nodes end at once.
func (b *Balancer) CloseIdleConnections() { b.transport.CloseIdleConnections() }
