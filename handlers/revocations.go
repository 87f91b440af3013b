package handlers

import (
	"context"
	"fmt"
	"strconv"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/receipt"
)

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
