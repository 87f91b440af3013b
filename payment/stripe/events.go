package stripe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/payment"
)

// eventLimit is how many events a page has, unless they are longer together than maxResponse. A page of one event is
// shorter: the event of a dispute has at most 150,000 characters of evidence, before and after a change.
const eventLimit = 20

var errKeyChanged = errors.New("the secret key has changed while Stripe listed the events")

// Events implements [payment.Provider]. Stripe keeps events for 30 days.
//
// Events does not filter by delivery_success: without a webhook endpoint, Stripe counts all events as delivered, and an
// event that another endpoint of the shop refuses counts as not delivered.
func (p *Provider) Events(ctx context.Context, since time.Time, after string) (payment.EventPage, error) {
	params := &sdk.EventListParams{}
	for _, e := range events {
		if e.kind == payment.ObjectRefund || e.kind == payment.ObjectDispute {
			params.Types = append(params.Types, sdk.String(e.name))
		}
	}
	if !since.IsZero() {
		params.CreatedRange = &sdk.RangeQueryParams{GreaterThanOrEqual: since.Unix()}
	}
	if after != "" {
		params.StartingAfter = sdk.String(after)
	}
	key := p.cfg.Secrets().Key
	list, err := p.eventsWithin(ctx, params)
	switch {
	case causeOf(err) == causeMissing:
		return payment.EventPage{}, payment.ErrUnknownObject
	case err != nil:
		return payment.EventPage{}, failed("list the events", err)
	case p.cfg.Secrets().Key != key:
		return payment.EventPage{}, errKeyChanged
	}
	hash := sha256.Sum256([]byte(key))
	page := payment.EventPage{
		At: p.answeredAt(list.LastResponse), More: list.HasMore, Key: hex.EncodeToString(hash[:8]),
	}
	for _, event := range list.Data {
		named := payment.Event{ID: event.ID, At: moment(event.Created)}
		if event.Data != nil {
			named.Object = objectOf(string(event.Type), event.Data.Object["id"], nil)
		}
		page.Events = append(page.Events, named)
	}
	return page, nil
}

// eventsWithin lists as many events as fit in a response, at most eventLimit.
func (p *Provider) eventsWithin(ctx context.Context, params *sdk.EventListParams) (*sdk.EventList, error) {
	for limit := int64(eventLimit); ; limit /= 2 {
		params.Limit = sdk.Int64(limit)
		list := &sdk.EventList{}
		if err := p.list(ctx, "/v1/events", params, list); limit == 1 || !errors.Is(err, errTooLong) {
			return list, err
		}
	}
}

// answeredAt returns when Stripe has answered, by its own clock if the response tells that.
func (p *Provider) answeredAt(response *sdk.APIResponse) time.Time {
	if response != nil {
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			return at
		}
	}
	return p.cfg.Clock()
}
