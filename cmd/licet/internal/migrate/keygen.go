package migrate

import (
	"fmt"
	"net/url"
	"time"

	"licet/cmd/licet/internal/bulk"
)

// keygen returns Keygen. Its API is in the form of https://jsonapi.org; see https://keygen.sh/docs/api/licenses/ and
// https://keygen.sh/docs/api/machines/.
func keygen() *Service {
	return &Service{
		Name: "keygen", Title: "Keygen",
		API: "https://api.keygen.sh/v1/accounts/ACCOUNT", Token: "an admin token",
		Mapping: []Mapping{
			{"key", "external_key"}, {"product", "product_id"}, {"maxMachines", "max_devices"},
			{"expiry", "expires_at"}, {"suspended, or a banned user", "status"},
			{"fingerprint of each machine", "devices"}, {"id, name, metadata", "metadata"},
		},
		perMinute: 100, // https://keygen.sh/docs/api/rate-limiting/: 500 in five minutes
		accept:    "application/vnd.api+json",
		start: []string{"licenses?page[size]=100&page[number]=1",
			"machines?page[size]=100&page[number]=1"},
		read: readKeygen,
	}
}

type keygenPage struct {
	Data []struct {
		ID         string
		Type       string
		Attributes struct {
			// of a license
			Key                              string
			Name                             string
			Expiry                           time.Time
			Status                           string
			Suspended                        bool
			Floating                         bool
			Scheme                           string
			MaxMachines                      *int
			MaxUses, MaxCores, MaxProcesses  *int
			RequireHeartbeat, RequireCheckIn bool
			Metadata                         map[string]any
			// of a machine
			Fingerprint string
		}
		Relationships struct {
			License, Product struct{ Data struct{ ID string } }
		}
	}
	Links struct {
		Next string
		Meta struct{ Count int }
	}
}

func readKeygen(body []byte, _ *url.URL) (page, error) {
	var got keygenPage
	if err := decode(body, &got); err != nil {
		return page{}, err
	}
	if got.Data == nil {
		return page{}, errUnpublished
	}
	var p page
	if got.Links.Next != "" {
		p.next = []string{got.Links.Next}
	}
	for _, d := range got.Data {
		a := &d.Attributes
		switch d.Type {
		case "machines":
			p.devices = append(p.devices, device{d.Relationships.License.Data.ID, a.Fingerprint})
			continue
		case "licenses":
		default:
			return page{}, fmt.Errorf("a resource of type %q is neither a license nor a machine", d.Type)
		}
		p.total = got.Links.Meta.Count
		l := license{id: d.ID, key: a.Key, product: d.Relationships.Product.Data.ID, expires: a.Expiry,
			metadata: map[string]any{}}
		for name, value := range a.Metadata {
			l.metadata[name] = value
		}
		l.metadata["keygen_id"] = d.ID
		if a.Name != "" {
			l.metadata["keygen_name"] = a.Name
		}
		switch {
		case a.MaxMachines != nil:
			l.maxDevices = *a.MaxMachines
		case !a.Floating:
			l.maxDevices = 1 // a node-locked license
		}
		if a.Suspended || a.Status == "BANNED" {
			l.state, l.reason = bulk.Suspended, "suspended at Keygen"
		}
		l.without = noted(map[string]bool{
			"maxUses": a.MaxUses != nil, "maxCores": a.MaxCores != nil, "maxProcesses": a.MaxProcesses != nil,
			"requireHeartbeat": a.RequireHeartbeat, "requireCheckIn": a.RequireCheckIn,
			"scheme: Licet does not verify signed keys offline": a.Scheme != "",
		})
		p.licenses = append(p.licenses, l)
	}
	return p, nil
}
