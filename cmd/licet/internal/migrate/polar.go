package migrate

import (
	"net/url"
	"strconv"
	"time"

	"licet/cmd/licet/internal/bulk"
)

// polar returns Polar; see https://polar.sh/docs/api-reference/license-keys/list.
func polar() *Service {
	return &Service{
		Name: "polar", Title: "Polar",
		API: "https://api.polar.sh/v1", Token: "an organization access token with license_keys:read",
		Mapping: []Mapping{
			{"key", "external_key"}, {"benefit_id", "product_id"}, {"limit_activations", "max_devices"},
			{"expires_at", "expires_at"}, {"status", "status"}, {"id of each activation", "devices"},
			{"id, customer_id", "metadata"},
		},
		perMinute: 500, // https://polar.sh/docs/api-reference/introduction
		accept:    "application/json",
		start:     []string{"license-keys/?limit=100&page=1"},
		read:      readPolar,
	}
}

type polarKey struct {
	ID               string
	Key              string
	CustomerID       string `json:"customer_id"`
	BenefitID        string `json:"benefit_id"`
	Status           string
	LimitActivations int       `json:"limit_activations"` // null: the key is not activated at all
	LimitUsage       *int      `json:"limit_usage"`
	ExpiresAt        time.Time `json:"expires_at"`
	Activations      []struct{ ID string }
}

type polarPage struct {
	Items      []polarKey
	Pagination struct {
		TotalCount int `json:"total_count"`
		MaxPage    int `json:"max_page"`
	}
	polarKey // of a response about one license key
}

func readPolar(body []byte, asked *url.URL) (page, error) {
	var got polarPage
	if err := decode(body, &got); err != nil {
		return page{}, err
	}
	if got.Items == nil && got.ID == "" {
		return page{}, errUnpublished
	}
	p := page{total: got.Pagination.TotalCount}
	for _, a := range got.Activations {
		p.devices = append(p.devices, device{got.ID, a.ID})
	}
	if asked != nil && got.Pagination.MaxPage > 0 {
		current, err := strconv.Atoi(asked.Query().Get("page"))
		if err != nil {
			return page{}, err
		}
		p.next = pageAfter(asked, "page", current, got.Pagination.MaxPage)
	}
	for _, k := range got.Items {
		l := license{id: k.ID, key: k.Key, product: k.BenefitID, maxDevices: k.LimitActivations,
			expires:  k.ExpiresAt,
			metadata: map[string]any{"polar_id": k.ID, "customer_id": k.CustomerID},
			without:  noted(map[string]bool{"limit_usage": k.LimitUsage != nil})}
		if k.Status != "granted" {
			l.state, l.reason = bulk.Suspended, k.Status+" at Polar"
		}
		p.licenses = append(p.licenses, l)
		if k.LimitActivations > 0 {
			p.next = append(p.next, k.ID) // the list has no activations
		}
	}
	return p, nil
}
