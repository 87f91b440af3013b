package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"licet/licensing/keyring"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node"
	"licet/node/store"
)

// Client sends commands to other nodes. It implements node.Peers. Create it with [NewClient].
type Client struct {
	signer signer
	list   func(context.Context) ([]store.Registration, error)
	codec  codec
	guard  *guard.Guard

	background sync.WaitGroup

	mu sync.Mutex
	// Guarded by mu:
	links   map[store.Incarnation]*link
	listed  time.Time     // when the list of nodes was last read
	failure error         // of the last read
	listing chan struct{} // closed when the running read of the list ends; nil: none is running
	closed  bool          // no further read of the list starts
}

var _ node.Peers = (*Client)(nil)

const (
	// listEvery is the greatest age of the list of nodes while it is in use. listSoonest is the least age at which the
	// client reads the list again to find a missing node.
	listEvery   = time.Second
	listSoonest = 50 * time.Millisecond
	listTimeout = 3 * time.Second
	// ageKept is how long the client keeps the age of another node. Clocks drift apart by less than a millisecond in
	// that time.
	ageKept = 10 * time.Second
)

// NewClient returns a client that finds nodes by list.
func NewClient(
	ring keyring.MasterRing, list func(context.Context) ([]store.Registration, error), guard *guard.Guard,
) (*Client, error) {
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	signer, err := newSigner(ring)
	if err != nil {
		return nil, err
	}
	return &Client{signer: signer, list: list, codec: codec, guard: guard, links: make(map[store.Incarnation]*link)},
		nil
}

// Close waits for a running read of the list of nodes and closes the idle connections. Commands that
// are being sent continue. Later commands reach only nodes that the client knows.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.background.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.links {
		l.http.CloseIdleConnections()
	}
}

// Send sends commands, at most once.
func (c *Client) Send(ctx context.Context, to store.Incarnation, hop node.Hop) (node.HopAnswer, error) {
	link, err := c.find(ctx, to)
	if err != nil {
		return node.HopAnswer{}, notSent(err)
	}
	body, err := c.codec.request(hop)
	if err != nil {
		return node.HopAnswer{}, notSent(err)
	}
	if len(body) > maxMessage {
		return node.HopAnswer{}, notSent(errTooLong)
	}
	// A failure before the commands are sent is ErrNotTaken: no command has run.
	over, known := link.ageAt(hop.Over)
	if !known {
		if _, err := c.exchange(ctx, link, 0, nil, tracing.Parent{}); err != nil {
			return node.HopAnswer{}, notSent(err)
		}
		if over, known = link.ageAt(hop.Over); !known {
			return node.HopAnswer{}, notSent(errors.New("the other node does not report its age"))
		}
	}
	answers, err := c.exchange(ctx, link, over, body, hop.Trace)
	if err != nil {
		return node.HopAnswer{}, err
	}
	return c.codec.readReply(answers, hop)
}

// Reach asks another node for its age, to test whether it answers.
func (c *Client) Reach(ctx context.Context, to store.Incarnation) error {
	link, err := c.find(ctx, to)
	if err == nil {
		_, err = c.exchange(ctx, link, 0, nil, tracing.Parent{})
	}
	return err
}

func notSent(err error) error { return fmt.Errorf("%w: %w", node.ErrNotTaken, err) }

// exchange sends signed commands and returns the body of the answer. Without commands, it asks for the
// age only.
func (c *Client) exchange(
	ctx context.Context, l *link, over time.Duration, body []byte, trace tracing.Parent,
) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, notSent(err)
	}
	request.Header.Set(signatureHeader, c.signer.sign(l.registration.Incarnation, over, body))
	setTrace(request.Header, trace)
	response, err := l.http.RoundTrip(request)
	if err != nil {
		var unreached *unreachedError
		if errors.As(err, &unreached) {
			return nil, notSent(err)
		}
		return nil, fmt.Errorf("send commands to another node: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	if err != nil {
		return nil, fmt.Errorf("read another node's answers: %w", err)
	}
	if response.StatusCode != http.StatusOK || len(answer) < answerHead {
		return nil, fmt.Errorf("another node answers with status %d and %d bytes", response.StatusCode, len(answer))
	}
	l.learn(time.Duration(binary.BigEndian.Uint64(answer[1:])))
	switch rest := answer[answerHead:]; answer[0] {
	case answered:
		return rest, nil
	case refused:
		return nil, notSent(errors.New(string(rest)))
	}
	return nil, errMalformed
}

// find returns the link to a node. If it knows the node, it returns at once, and reads the list in the
// background if the list is old. Otherwise it waits for a new list.
func (c *Client) find(ctx context.Context, to store.Incarnation) (*link, error) {
	for waited := false; ; waited = true {
		c.mu.Lock()
		l, err := c.links[to], c.failure
		age := time.Since(c.listed)
		if c.listing == nil && !waited && !c.closed && (age >= listEvery || age >= listSoonest && l == nil) {
			c.refresh()
		}
		listing := c.listing
		c.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case listing != nil && !waited:
		case err != nil:
			return nil, fmt.Errorf("list the nodes: %w", err)
		default:
			return nil, fmt.Errorf("no node of incarnation %v is registered", to)
		}
		select {
		case <-listing:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// refresh reads the list of nodes in the background. The caller holds mu.
func (c *Client) refresh() {
	listing := make(chan struct{})
	c.listing = listing
	var nodes []store.Registration
	err := errListPanicked
	c.guard.StartIn(&c.background, "list of nodes", func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if err == nil {
				c.replace(nodes)
			}
			c.failure, c.listed, c.listing = err, time.Now(), nil
			close(listing)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
		defer cancel()
		nodes, err = c.list(ctx)
	})
}

var errListPanicked = errors.New("panic")

// replace installs a new list of nodes. It drops the links to nodes that are gone; commands that were
// sent on them continue.
func (c *Client) replace(nodes []store.Registration) {
	links := make(map[store.Incarnation]*link, len(nodes))
	for _, r := range nodes {
		if l := c.links[r.Incarnation]; l != nil && l.registration == r {
			links[r.Incarnation] = l
		} else {
			links[r.Incarnation] = newLink(r)
		}
	}
	for incarnation, l := range c.links {
		if links[incarnation] != l {
			l.http.CloseIdleConnections()
		}
	}
	c.links = links
}
