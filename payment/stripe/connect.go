package stripe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"
)

const endpoints = "/v1/webhook_endpoints"

// Endpoint is a webhook endpoint at Stripe.
type Endpoint struct {
	ID     string
	Secret string // the signing secret, which Stripe tells once
}

// lacks says which events an endpoint does not send, for example an endpoint of an earlier version; empty: none.
func lacks(e *sdk.WebhookEndpoint) string {
	missing := slices.DeleteFunc(Events(), func(event string) bool {
		return slices.Contains(e.EnabledEvents, event) || slices.Contains(e.EnabledEvents, "*")
	})
	if len(missing) == 0 {
		return ""
	}
	return ", and does not send " + strings.Join(missing, ", ") + ", which you can add in Stripe's dashboard"
}

// Connect makes a webhook endpoint at Stripe, which sends the events of [Events] in the version of the API that the SDK
// knows. It fails if there is an endpoint with the same URL: Stripe would send each event twice, and does not tell the
// secret of an endpoint again.
func (p *Provider) Connect(ctx context.Context, url string) (Endpoint, error) {
	params := &sdk.WebhookEndpointListParams{}
	params.Limit = sdk.Int64(findLimit) // more than Stripe allows
	there := &sdk.WebhookEndpointList{}
	if err := p.list(ctx, endpoints, params, there); err != nil {
		return Endpoint{}, failed("list the webhook endpoints", err)
	}
	for _, e := range there.Data {
		if e.URL == url {
			return Endpoint{}, fmt.Errorf("the webhook endpoint %s at Stripe has this URL already%s: copy its "+
				"signing secret from Stripe's dashboard, or delete it there and run this command again", e.ID, lacks(e))
		}
	}
	made := &sdk.WebhookEndpoint{}
	err := p.post(ctx, endpoints, "", &sdk.WebhookEndpointCreateParams{
		URL: sdk.String(url), EnabledEvents: sdk.StringSlice(Events()), APIVersion: sdk.String(sdk.APIVersion),
		Description: sdk.String("Licet"),
	}, made)
	if err == nil && made.Secret == "" {
		return Endpoint{}, fmt.Errorf("the webhook endpoint %s is made without a signing secret: copy the secret from "+
			"Stripe's dashboard", made.ID)
	}
	return Endpoint{ID: made.ID, Secret: made.Secret}, failed("make a webhook endpoint", err)
}
