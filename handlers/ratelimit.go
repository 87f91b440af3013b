package handlers

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"licet/handlers/limits"
	"licet/internal/fair"
	"licet/licensing"
	"licet/node/store"
)

// The headers of draft-ietf-httpapi-ratelimit-headers since version 08.
const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"

	exposedWithRateLimits = exposed + ", " + headerRateLimit + ", " + headerRateLimitPolicy
)

const (
	// lookUpsAtOnce bounds the look-ups of credentials under way. The owner of credentials is not known before the
	// look-up, so client addresses share these places.
	lookUpsAtOnce = 256
	// lookUpsWaiting bounds the requests that wait to look credentials up.
	lookUpsWaiting = 1024
	// bytesPerToken is how many bytes a request reads or returns for a token besides its first. With the default of 500
	// tokens a second, an account reads at most 8 MB a second of each node, half of it from etcd.
	bytesPerToken = 16 << 10
	// changeFactor is how many times as much a byte of a change counts as a byte of a read. With the default, an
	// account changes 1 MB a second through each node.
	changeFactor = 8
	// apiKeyTokens is how many more tokens a new API key or a new secret takes. It makes several requests to etcd that
	// share nothing with other requests, and a new key makes the node count the owner's keys.
	apiKeyTokens = 100
)

// rateLimits counts requests against their rate limits, and refuses those beyond.
type rateLimits struct {
	limits  *limits.Limits
	proxies limits.Proxies
	refused *prometheus.CounterVec // by the name of the limit

	lookUps     *fair.Places[netip.Addr] // of credentials, by the client's network
	lookUpsShed prometheus.Counter       // refusals for want of a place
}

func newRateLimits(cfg *Config) rateLimits {
	return rateLimits{
		limits: cfg.Limits, proxies: cfg.Proxies, refused: cfg.Metrics.RateLimited,
		lookUps:     fair.New[netip.Addr](fair.Config{Places: lookUpsAtOnce, Waiting: lookUpsWaiting}),
		lookUpsShed: cfg.Metrics.CommandsShed.WithLabelValues("credentials"),
	}
}

// account counts a request against the limit of the account and mode of its API key, if the request has one.
func (l *rateLimits) account(c *call) error {
	if c.key == nil {
		return nil
	}
	return l.count(c, l.limits.Account(c.key.Owner), errAccountLimited)
}

// countReads returns a context whose reads of the store take tokens of the limit of an account, at once: a page of
// a list that waits meanwhile must see what this page has read. It is refused if the account then lacks tokens.
func (l *rateLimits) countReads(ctx context.Context, owner licensing.Owner) context.Context {
	var bytes atomic.Int64
	return store.CountReads(ctx, func(more int) {
		after := bytes.Add(int64(more))
		l.limits.AccountCost(owner, int(after/bytesPerToken-(after-int64(more))/bytesPerToken))
	}, func() error {
		d := l.limits.AccountDebt(owner)
		if !d.Refused {
			return nil
		}
		refusal := *errAccountLimited
		refusal.Limit = &licensing.Limit{Policy: d.Policy.Name, Count: d.Policy.Rate.Count, Per: d.Policy.Rate.Per,
			Next: d.Next}
		return &refusal
	})
}

// charge takes tokens of the limit of the account for the response to a request with an API key. A change counts its
// response changeFactor times: the response shows what the change has stored. Responses up to smallResponse don't
// count. charge may be called again, when more is known.
func (l *rateLimits) charge(c *call) {
	if c.key == nil {
		return
	}
	response := c.response
	if !isRead(c.fast) {
		response *= changeFactor
	}
	tokens := int(response / bytesPerToken)
	l.limits.AccountCost(c.key.Owner, tokens-c.charged)
	c.charged = max(c.charged, tokens)
}

// chargeLicenses takes the tokens of new licenses, as a grant of so many does, before the change: many may come at
// once.
func (l *rateLimits) chargeLicenses(c *call, quantity int) {
	tokens := quantity * grantedLicense * changeFactor / bytesPerToken
	l.limits.AccountCost(c.key.Owner, tokens-c.charged)
	c.charged = max(c.charged, tokens)
}

// chargeAPIKey takes the tokens of a new API key or a new secret, before the change: many may come at once.
func (l *rateLimits) chargeAPIKey(c *call) { l.limits.AccountCost(c.key.Owner, apiKeyTokens) }

// attempt runs look, which looks up credentials that the client may have guessed, and reports whether they are good.
// attempt counts it against the limit of the client's address unless the credentials are good or the look-up fails.
// While that limit is used up, attempt does not run look. The look-ups under way share places by network.
func (l *rateLimits) attempt(ctx context.Context, c *call, look func() (good bool, err error)) error {
	client := l.client(c)
	d := l.limits.Attempt(client)
	if d.Refused {
		return l.count(c, d, errAuthenticationLimited)
	}
	good, err := l.lookIn(ctx, limits.Network(client), look)
	if good || err != nil {
		l.limits.AttemptSucceeded(client)
		return err
	}
	return l.count(c, d, nil)
}

// lookIn runs look in one of the places of a network.
func (l *rateLimits) lookIn(
	ctx context.Context, network netip.Addr, look func() (good bool, err error),
) (good bool, err error) {
	if l.lookUps.Enter(ctx, network) != nil {
		l.lookUpsShed.Inc()
		return false, licensing.ErrOverloaded
	}
	defer l.lookUps.Leave(network)
	return look()
}

// failedAuthentication counts bad credentials, which needed no look-up, against the limit of the client's address. It
// returns the error to report.
func (l *rateLimits) failedAuthentication(c *call, cause error) error {
	if err := l.count(c, l.limits.FailedAuthentication(l.client(c)), errAuthenticationLimited); err != nil {
		return err
	}
	return cause
}

// license counts a request against the limit of the license that the request names.
func (l *rateLimits) license(c *call, key licensing.LicenseKey) error {
	return l.count(c, l.limits.License(licensing.LicenseRef(key).ID), errLicenseLimited)
}

// payPage counts a form of the pay page, which makes the node ask a payment provider, against the limit of the order:
// the provider limits how often the shop's account asks, and any client with the link may send the form.
func (l *rateLimits) payPage(c *call, orderNo string) error {
	return l.count(c, l.limits.PayPage(orderNo), errPayPageLimited)
}

// failure counts a failed request against the limit of its client's address if the request names
// no existing license. It returns the error to report. failure runs after the lookup, so a
// well-formed guess costs a lookup. In return, requests for existing licenses are never limited by
// address, however many clients share one. Requests with an API key have the limit of its account instead.
func (l *rateLimits) failure(r *request, cause error) error {
	if r.route == nil || r.route.access != OptionalAuth {
		return cause
	}
	return l.endUserFailure(&r.call, cause)
}

// endUserFailure is failure for a request to a route of end users.
func (l *rateLimits) endUserFailure(c *call, cause error) error {
	var known *licensing.Error
	if !errors.As(cause, &known) {
		return cause
	}
	switch known.Reason {
	case reasonMalformedRequest, licensing.ReasonInvalidLicenseKey, licensing.ReasonLicenseNotFound:
	default:
		return cause
	}
	return l.guessed(c, cause)
}

// guessed counts a look-up of a name that does not exist against the limit of the client's address, and returns the
// error to report.
func (l *rateLimits) guessed(c *call, cause error) error {
	if c.key != nil {
		return cause
	}
	if err := l.count(c, l.limits.Address(l.client(c)), errAddressLimited); err != nil {
		return err
	}
	return cause
}

// mayGuess refuses the look-up of a name that the client may have guessed while the limit of the client's address is
// used up. failure counts the look-up if there is no license of that name. mayGuess takes no token: many machines
// behind one address may start at once. Admission bounds the look-ups under way. Requests with an API key have the
// limit of its account.
func (l *rateLimits) mayGuess(c *call) error {
	if c.key != nil {
		return nil
	}
	if d := l.limits.AddressLeft(l.client(c)); d.Refused {
		return l.count(c, d, errAddressLimited)
	}
	return nil
}

// document counts the bytes of an open document against the limit of the client's address. Requests with an API key
// have the limit of its account.
func (l *rateLimits) document(c *call, bytes int) error {
	if c.key != nil || bytes == 0 {
		return nil
	}
	d := l.limits.Document(l.client(c), bytes)
	if !d.Refused {
		return nil // and no header: caches keep the document, and answer others
	}
	return l.count(c, d, errDocumentsLimited)
}

// trial counts a request for a trial without an API key against the limit of the client's address: each may issue a
// license.
func (l *rateLimits) trial(c *call) error {
	if c.key != nil {
		return nil
	}
	return l.count(c, l.limits.Address(l.client(c)), errTrialsLimited)
}

// count records the decision of a limit, and returns refusal if the limit refuses the request.
func (l *rateLimits) count(c *call, d limits.Decision, refusal *licensing.Error) error {
	if d.Policy == nil {
		return nil
	}
	c.decisions = append(c.decisions, d)
	if !d.Refused {
		return nil
	}
	l.refused.WithLabelValues(d.Policy.Name).Inc()
	return refusal
}

// noteRefusal records that a limit has refused the request, perhaps after the same limit has accepted the request.
func (s *Server) noteRefusal(c *call, by *licensing.Limit) {
	c.decisions = slices.DeleteFunc(c.decisions, func(d limits.Decision) bool { return d.Policy.Name == by.Policy })
	c.decisions = append(c.decisions, limits.Decision{
		Policy:  &limits.Policy{Name: by.Policy, Rate: limits.Rate{Count: by.Count, Per: by.Per}},
		Refused: true, Next: by.Next,
	})
	s.cfg.Metrics.RateLimited.WithLabelValues(by.Policy).Inc()
}

// client returns the address of a request's client. All requests that did not come over TCP count as
// one client.
func (l *rateLimits) client(c *call) netip.Addr {
	peer, ok := c.fast.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return l.proxies.Client(peer.AddrPort().Addr(), c.fast.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor))
}

// network returns the network of a request's client.
func (l *rateLimits) network(c *call) netip.Addr { return limits.Network(l.client(c)) }

// retryAfter returns the seconds until the limit that has refused the request accepts one; 0 if no limit
// has refused the request.
func (r *request) retryAfter() int {
	for _, d := range r.decisions {
		if d.Refused {
			return wholeSeconds(d.Next)
		}
	}
	return 0
}

// writeRateLimits writes the headers RateLimit-Policy and RateLimit.
func (r *request) writeRateLimits() {
	var policies, states [96]byte
	policy, state := policies[:0], states[:0]
	for i, d := range r.decisions {
		if i > 0 {
			policy, state = append(policy, ", "...), append(state, ", "...)
		}
		policy = appendItem(policy, d.Policy.Name, ";q=", d.Policy.Rate.Count, ";w=", wholeSeconds(d.Policy.Rate.Per))
		state = appendItem(state, d.Policy.Name, ";r=", d.Remaining, ";t=", wholeSeconds(d.Next))
	}
	h := &r.fast.Response.Header
	h.SetCanonical([]byte(headerRateLimitPolicy), policy)
	h.SetCanonical([]byte(headerRateLimit), state)
	if r.resource.open {
		set(h, fasthttp.HeaderAccessControlExposeHeaders, exposedWithRateLimits)
	}
}

// appendItem appends a string with two parameters (RFC 9651). No name has a character that needs an
// escape.
func appendItem(to []byte, name, first string, a int, second string, b int) []byte {
	to = append(append(append(to, '"'), name...), '"')
	to = strconv.AppendInt(append(to, first...), int64(a), 10)
	return strconv.AppendInt(append(to, second...), int64(b), 10)
}

// wholeSeconds rounds up, because a client that retries earlier is refused again.
func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
