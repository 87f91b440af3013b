package handlers

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"licet/handlers/connection"
	"licet/internal/fair"
	"licet/licensing"
)

const (
	// smallResponse is the length in bytes up to which a response does not count: its connection takes
	// more memory.
	smallResponse = 4 << 10
	// grantedLicense is about how many bytes the response to a grant takes for each license, without the
	// license's metadata.
	grantedLicense = 1 << 10
)

// responses bounds the bytes of responses that have not left yet. A response counts for the owner that
// asked for it, until it is written or its connection has failed: a client may read slowly, or not at
// all, and the response waits in memory. An owner may have as many bytes as are still free.
type responses struct {
	bytes *fair.Shares[licensing.Owner]
	shed  prometheus.Counter // counts refused requests
}

// refuseIfOver refuses a request that changes something, if its owner has more than is still free. Such
// a request could not be refused once its response is known.
func (p *responses) refuseIfOver(r *request) error {
	if isRead(r.fast) || !p.bytes.Over(r.owner()) {
		return nil
	}
	p.shed.Inc()
	return licensing.ErrOverloaded
}

// reserve counts a response that is about to be made, with its expected length.
func (p *responses) reserve(c *call, length int) error {
	if length <= smallResponse {
		return nil
	}
	if !p.bytes.Take(c.owner(), int64(length)) {
		p.shed.Inc()
		return licensing.ErrOverloaded
	}
	c.response = int64(length)
	return nil
}

// charge counts a response that was made. If there is no room for the response, charge returns the error
// to report instead: ErrOverloaded for a request that reads, and ErrOutcomeUnknown for a request that
// has changed something.
func (p *responses) charge(r *request, answer *document) error {
	length := int64(cap(answer.body))
	if answer.inPlace {
		length = int64(len(r.fast.Response.Body()))
	}
	if length <= smallResponse {
		length = 0
	}
	more := length - r.response
	switch {
	case more < 0:
		p.bytes.Give(r.owner(), -more)
	case more > 0 && !p.bytes.Take(r.owner(), more):
		p.shed.Inc()
		if isRead(r.fast) {
			return licensing.ErrOverloaded
		}
		return licensing.ErrOutcomeUnknown
	}
	r.response = length
	return nil
}

// giveLater ends the count of a request's response when the response has left.
func (p *responses) giveLater(r *request) {
	if r.response == 0 {
		return
	}
	owner, length := r.owner(), r.response
	give := func() { p.bytes.Give(owner, length) }
	if c := connection.Of(r.fast); c != nil {
		c.AfterResponse(give)
	} else {
		give()
	}
}

// isRead reports whether a request changes nothing.
func isRead(ctx *fasthttp.RequestCtx) bool { return ctx.IsGet() || ctx.IsHead() }
