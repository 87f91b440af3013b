package migrate

import (
	"net/url"

	"licet/cmd/licet/internal/bulk"
)

// gumroad returns Gumroad; see https://gumroad.com/api#sales. It counts how often a license key was verified, but has
// neither devices nor a limit of them.
func gumroad() *Service {
	return &Service{
		Name: "gumroad", Title: "Gumroad",
		API: "https://api.gumroad.com/v2", Token: "an access token with view_sales",
		Mapping: []Mapping{
			{"license key", "external_key"}, {"product", "product_id"}, {"end of the subscription", "expires_at"},
			{"disabled, refunded, charged back, ended", "status"}, {"id of the sale, order, subscription", "metadata"},
		},
		Exports:   true,
		perMinute: 60, // unpublished
		accept:    "application/json",
		start:     []string{"sales"},
		read:      readGumroad,
		readCSV:   readGumroadCSV,
	}
}

type gumroadPage struct {
	Sales []struct {
		ID              string
		ProductID       string `json:"product_id"`
		OrderID         int64  `json:"order_id"`
		SubscriptionID  string `json:"subscription_id"`
		LicenseKey      string `json:"license_key"`
		LicenseDisabled bool   `json:"license_disabled"`
		Quantity        int
		Refunded        bool
		Chargedback     bool
		DisputeWon      bool `json:"dispute_won"`
		Cancelled       bool
		Ended           bool
	}
	NextPageKey string `json:"next_page_key"`
}

func readGumroad(body []byte, _ *url.URL) (page, error) {
	var got gumroadPage
	if err := decode(body, &got); err != nil {
		return page{}, err
	}
	if got.Sales == nil {
		return page{}, errUnpublished
	}
	var p page
	if got.NextPageKey != "" {
		p.next = []string{"?" + url.Values{"page_key": {got.NextPageKey}}.Encode()}
	}
	for _, s := range got.Sales {
		l := license{id: s.ID, key: s.LicenseKey, product: s.ProductID,
			metadata: map[string]any{"gumroad_sale_id": s.ID, "order_id": s.OrderID}}
		if s.SubscriptionID != "" {
			l.metadata["subscription_id"] = s.SubscriptionID
		}
		l.setState(s.LicenseDisabled, s.Refunded, s.Chargedback && !s.DisputeWon)
		if s.Ended && l.state == "" {
			l.state, l.reason = bulk.Suspended, "the subscription ended at Gumroad"
		}
		l.without = noted(map[string]bool{
			seats: s.Quantity > 1,
			"subscription_id: the subscription goes on at Gumroad": s.SubscriptionID != "" && !s.Ended,
			"cancelled: the API does not tell when it ends":        s.Cancelled && !s.Ended,
		})
		p.licenses = append(p.licenses, l)
	}
	return p, nil
}

// seats is the value of a sale of several seats.
const seats = "quantity above 1"

// setState sets the state of a license. Money that went back does not return; a seller can enable a license again.
func (l *license) setState(disabled, refunded, chargedBack bool) {
	switch {
	case refunded:
		l.state, l.reason = bulk.Revoked, "refunded at Gumroad"
	case chargedBack:
		l.state, l.reason = bulk.Revoked, "charged back at Gumroad"
	case disabled:
		l.state, l.reason = bulk.Suspended, "disabled at Gumroad"
	}
}
