package migrate

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"licet/cmd/licet/internal/bulk"
)

// lemonSqueezy returns Lemon Squeezy. Its API is in the form of https://jsonapi.org; see
// https://docs.lemonsqueezy.com/api/license-keys and https://docs.lemonsqueezy.com/api/license-key-instances.
func lemonSqueezy() *Service {
	return &Service{
		Name: "lemonsqueezy", Title: "Lemon Squeezy",
		API: "https://api.lemonsqueezy.com/v1", Token: "an API key",
		Mapping: []Mapping{
			{"key", "external_key"}, {"product_id", "product_id"}, {"activation_limit", "max_devices"},
			{"expires_at", "expires_at"}, {"disabled, or status disabled", "status"},
			{"identifier of each instance", "devices"},
			{"id, order_id, customer_id", "metadata"},
		},
		perMinute: 300, // https://docs.lemonsqueezy.com/api/getting-started/requests
		accept:    "application/vnd.api+json",
		start:     []string{"license-keys?include=license-key-instances&page[size]=100&page[number]=1"},
		read:      readLemonSqueezy,
	}
}

type lemonSqueezyResource struct {
	ID         string
	Type       string
	Attributes struct {
		// of a license key
		CustomerID      int64 `json:"customer_id"`
		OrderID         int64 `json:"order_id"`
		ProductID       int64 `json:"product_id"`
		Key             string
		ActivationLimit int `json:"activation_limit"` // null: any number
		InstancesCount  int `json:"instances_count"`
		Status          string
		Disabled        any       // a boolean; the API also sends 0 and 1
		ExpiresAt       time.Time `json:"expires_at"`
		// of an instance
		LicenseKeyID int64 `json:"license_key_id"`
		Identifier   string
	}
}

type lemonSqueezyPage struct {
	Meta struct {
		Page struct{ CurrentPage, LastPage, Total int }
	}
	Data     []lemonSqueezyResource
	Included []lemonSqueezyResource
}

func readLemonSqueezy(body []byte, asked *url.URL) (page, error) {
	var got lemonSqueezyPage
	if err := decode(body, &got); err != nil {
		return page{}, err
	}
	if got.Data == nil {
		return page{}, errUnpublished
	}
	at := got.Meta.Page
	p := page{next: pageAfter(asked, "page[number]", at.CurrentPage, at.LastPage)}
	listed := map[string]int{} // how many instances of each license key are here
	for _, d := range append(got.Included, got.Data...) {
		a := &d.Attributes
		switch d.Type {
		case "license-key-instances":
			owner := strconv.FormatInt(a.LicenseKeyID, 10)
			listed[owner]++
			p.devices = append(p.devices, device{owner, a.Identifier})
		case "license-keys":
			p.total = at.Total
			l := license{id: d.ID, key: a.Key, product: strconv.FormatInt(a.ProductID, 10),
				maxDevices: a.ActivationLimit, expires: a.ExpiresAt, metadata: map[string]any{
					"lemonsqueezy_id": d.ID, "order_id": a.OrderID, "customer_id": a.CustomerID}}
			if a.Status == "disabled" || a.Disabled == true || a.Disabled == 1.0 {
				l.state, l.reason = bulk.Suspended, "disabled at Lemon Squeezy"
			}
			p.licenses = append(p.licenses, l)
			if listed[d.ID] < a.InstancesCount {
				p.next = append(p.next, fmt.Sprintf(
					"license-key-instances?filter[license_key_id]=%s&page[size]=100&page[number]=1", d.ID))
			}
		default:
			return page{}, fmt.Errorf("a resource of type %q is neither a license key nor an instance", d.Type)
		}
	}
	return p, nil
}
