package handlers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/receipt"
)

// receiptKeyRoutes are the functions of the routes of receipt keys.
type receiptKeyRoutes struct{ *Server }

// receiptKeys are the keys that sign the receipts of an account.
type receiptKeys struct {
	AccountID string         `json:"account_id"`
	Mode      licensing.Mode `json:"mode"`
	Root      string         `json:"root"`
	JWKSURL   string         `json:"jwks_url"`
	Keys      []receiptKey   `json:"keys"`
}

type receiptKey struct {
	KeyID     string    `json:"kid"`
	CreatedAt timestamp `json:"created_at"`
	SignsFrom timestamp `json:"signs_from"`
	EndsAt    timestamp `json:"ends_at"`
}

// makeReceiptKeys shows the receipt keys of the caller's account, and makes them if there are none.
func (s receiptKeyRoutes) makeReceiptKeys(ctx context.Context, c *call, _ noInput) (receiptKeys, error) {
	signer, err := s.cfg.Node.Signer(ctx, c.owner())
	if err != nil {
		return receiptKeys{}, err
	}
	return s.answer(signer), nil
}

// rotateReceiptKeys adds a receipt key.
func (s receiptKeyRoutes) rotateReceiptKeys(ctx context.Context, c *call, _ noInput) (receiptKeys, error) {
	signer, err := s.cfg.Node.RotateReceiptKeys(ctx, c.owner(), c.actor())
	if err != nil {
		return receiptKeys{}, err
	}
	return s.answer(signer), nil
}

func (s receiptKeyRoutes) answer(signer *service.ReceiptSigner) receiptKeys {
	owner := signer.Keys.Owner
	answer := receiptKeys{
		AccountID: owner.AccountID, Mode: owner.Mode,
		Root:    receipt.FormatRoot(signer.Root.Public()),
		JWKSURL: s.cfg.PublicURL + "/v1/accounts/" + owner.AccountID + "/" + string(owner.Mode) + "/jwks.json",
	}
	for _, k := range signer.Keys.Listed(s.cfg.Node.Now()) {
		answer.Keys = append(answer.Keys, receiptKey{
			KeyID:     signer.Of(k.ReceiptKey).KeyID(),
			CreatedAt: timestamp(k.CreatedAt), SignsFrom: timestamp(k.SignsFrom), EndsAt: timestamp(k.EndsAt),
		})
	}
	return answer
}

// jwksPath names an account and a mode.
type jwksPath struct {
	AccountID text `path:"account_id"`
	Mode      text `path:"mode"`
}

const (
	// jwksCaching is shorter than the time before a new receipt key signs.
	jwksCaching = "public, max-age=300"
	// setStep is how often the set of receipt keys is signed anew: in between, every node answers the same.
	setStep = time.Hour
	// setValidity is longer than a receipt is valid, so that a program without network needs the set only once.
	setValidity = licensing.MaxReceiptValidity + 2*24*time.Hour
)

// keySet answers the set of receipt keys of an account, signed with its root key.
func (s receiptKeyRoutes) keySet(ctx context.Context, c *call, in jwksPath) (document, error) {
	owner := licensing.Owner{AccountID: in.AccountID.value, Mode: licensing.Mode(in.Mode.value)}
	signer, err := s.signerOf(ctx, c, owner)
	if err != nil {
		return document{}, err
	}
	if !s.cfg.Node.DocumentClock().Dates(setValidity) {
		return document{}, licensing.ErrClockInDoubt
	}
	set, err := s.signedSet(signer)
	if err != nil {
		return document{}, err
	}
	return s.cacheable(c, contentTypeJSON, jwksCaching, set)
}

// jwks is a JSON Web Key Set (RFC 7517) with the same set as a signed document.
type jwks struct {
	Keys   []receipt.JSONWebKey `json:"keys"`
	Signed string               `json:"signed"`
}

// setIssued returns when a set of keys is issued that is asked for now.
func setIssued(keys *licensing.ReceiptKeys, now time.Time) time.Time {
	issued := now.Truncate(setStep)
	if last := keys.Keys[len(keys.Keys)-1].CreatedAt; issued.Before(last) {
		return last
	}
	return issued
}

// signedSet returns the set of receipt keys, a jwks, which is signed once for all that ask.
func (s *Server) signedSet(signer *service.ReceiptSigner) (service.SignedDocument, error) {
	now := s.cfg.Node.DocumentClock().Time(s.cfg.Node.Now())
	issued := setIssued(signer.Keys, now)
	return signer.Sets.Of(issued.Unix(), func() (service.SignedDocument, error) {
		return s.signSet(signer, issued, now)
	})
}

func (s *Server) signSet(signer *service.ReceiptSigner, issued, now time.Time) (d service.SignedDocument, err error) {
	keys := signer.Keys
	set := receipt.KeySet{
		Issuer: s.cfg.PublicURL, AccountID: keys.Owner.AccountID, Mode: string(keys.Owner.Mode),
		IssuedAt: issued.Unix(), ExpiresAt: issued.Add(setValidity).Unix(),
	}
	for _, k := range keys.Listed(now) {
		set.Keys = append(set.Keys, receipt.NewJSONWebKey(signer.Of(k.ReceiptKey).Public()))
	}
	if d.Signed, err = set.Sign(signer.Root); err != nil {
		return d, err
	}
	d.Body, err = encode(jwks{Keys: set.Keys, Signed: d.Signed})
	return d, err
}

// signerOf returns the receipt keys of an account that a request names. Clients without an API key may look up accounts
// without receipt keys only as often as the limit of their address allows.
func (s *Server) signerOf(ctx context.Context, c *call, owner licensing.Owner) (*service.ReceiptSigner, error) {
	if !licensing.ValidAccountID(owner.AccountID) || owner.Mode != licensing.Live && owner.Mode != licensing.Test {
		return nil, errNoReceiptKeys
	}
	signer, known := s.cfg.Node.RecallSigner(owner)
	if signer != nil {
		return signer, nil
	}
	if !known {
		if err := s.rates.mayGuess(c); err != nil {
			return nil, err
		}
	}
	signer, err := s.cfg.Node.FindSigner(ctx, owner, s.rates.network(c))
	if errors.Is(err, licensing.ErrNoReceiptKeys) {
		return nil, s.rates.guessed(c, errNoReceiptKeys)
	}
	return signer, err
}

var errNoReceiptKeys = &licensing.Error{
	Reason: reasonNotFound, Message: "there is no such account, or it has no receipt keys",
}

// cacheable answers a document that caches may keep, or 304 if the client has it. The bytes of the document count
// against the limit of the client's address, unless the response leaves them out.
func (s receiptKeyRoutes) cacheable(
	c *call, contentType, caching string, signed service.SignedDocument,
) (document, error) {
	answer := document{status: fasthttp.StatusOK, body: signed.Body, contentType: contentType, headers: []header{
		{fasthttp.HeaderCacheControl, caching}, {fasthttp.HeaderETag, signed.ETag},
	}}
	for known := range strings.SplitSeq(string(c.fast.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), ",") {
		if known = strings.TrimSpace(known); strings.TrimPrefix(known, "W/") == signed.ETag || known == "*" {
			answer.status, answer.body = fasthttp.StatusNotModified, nil
		}
	}
	if c.fast.IsHead() {
		return answer, nil
	}
	return answer, s.rates.document(c, len(answer.body))
}

// revocationQuery names an account and a mode, and the list that the client has.
type revocationQuery struct {
	AccountID text  `path:"account_id"`
	Mode      text  `path:"mode"`
	After     param `query:"after"`

	after int64
}

func (q *revocationQuery) check(c *checks) {
	const last = 1<<53 - 1
	if c.describe("after", Limits{Bounded: true, Maximum: last}) || !q.After.given {
		return
	}
	after, err := strconv.ParseUint(q.After.value, 10, 53)
	if err != nil {
		c.add("after", "must be the epoch of a list, an integer of at most "+strconv.Itoa(last))
	}
	q.after = int64(after)
}

// revocations answers an account's list of revocations: what was revoked after the list that the client has, or all.
func (s receiptKeyRoutes) revocations(ctx context.Context, c *call, in revocationQuery) (document, error) {
	owner := licensing.Owner{AccountID: in.AccountID.value, Mode: licensing.Mode(in.Mode.value)}
	signer, err := s.signerOf(ctx, c, owner)
	if err != nil {
		return document{}, err
	}
	list, err := s.cfg.Node.Revocations(ctx, owner, s.rates.network(c))
	if err != nil {
		return document{}, err
	}
	after := list.Increment(in.after)
	signed, err := s.cfg.Node.SignList(ctx, owner, list, after, func() (service.SignedDocument, error) {
		signed, err := (&receipt.Revocations{
			Issuer: s.cfg.PublicURL, AccountID: owner.AccountID, Mode: string(owner.Mode),
			AsOf: list.AsOf.Unix(), Epoch: list.Epoch, After: after, Entries: entriesOf(list.After(after)),
		}).Sign(signer.Signing(list.AsOf))
		return service.SignedDocument{Body: []byte(signed)}, err
	})
	if err != nil {
		return document{}, err
	}
	return s.cacheable(c, mediaTypeJWS, fmt.Sprintf("public, max-age=%.0f", list.MaxAge().Seconds()), signed)
}

func entriesOf(list []store.Revocation) (entries receipt.Entries) {
	for i := range list {
		entries = entries.Append(list[i].Name, int64(list[i].Revision))
	}
	return entries
}

const mediaTypeJWS = "application/jose" // RFC 7515, section 9.2.1
