package handlers

import (
	"encoding/json"

	"licet/licensing"
)

// product is the answer of everything that is about one product.
type product struct {
	ProductID        string          `json:"product_id"`
	Name             *string         `json:"name"`
	KeyPrefix        string          `json:"key_prefix"`
	MaxDevices       int             `json:"max_devices"`
	Validity         *string         `json:"validity"`
	ValidityFrom     string          `json:"validity_from"`
	SelfService      bool            `json:"self_service_deactivation"`
	RemovalsPerMonth int             `json:"removals_per_month"`
	Metadata         json.RawMessage `json:"metadata"`
	CreatedAt        timestamp       `json:"created_at"`
	AccountID        string          `json:"account_id"`
	Mode             licensing.Mode  `json:"mode"`
}

// What validity_from may be.
const (
	fromIssue      = "issue"
	fromActivation = "activation"
)

func productAnswer(p *licensing.Product) product {
	t := &p.Terms
	answer := product{
		ProductID:        p.ID,
		Name:             optional(p.Name),
		KeyPrefix:        t.KeyPrefix,
		MaxDevices:       t.MaxDevices,
		Validity:         optional(t.Validity.String()),
		ValidityFrom:     fromIssue,
		SelfService:      t.SelfService.Allowed,
		RemovalsPerMonth: t.SelfService.RemovalsPerMonth,
		Metadata:         metadata(p.Metadata),
		CreatedAt:        timestamp(p.CreatedAt),
		AccountID:        p.Owner.AccountID,
		Mode:             p.Owner.Mode,
	}
	if t.FromActivation {
		answer.ValidityFrom = fromActivation
	}
	return answer
}

// putProduct describes a product, and replaces what was said of it before.
func (s *Server) putProduct(r *request) (any, error) {
	var bad problems
	bad.productID("product_id", text{value: r.value("product_id"), given: true})
	cmd, err := readProduct(r.body(), &bad)
	if err != nil {
		return nil, err
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	cmd.ID, cmd.Owner = r.value("product_id"), r.caller.Owner
	p, created, err := s.cfg.Node.PutProduct(r.ctx, cmd)
	if err != nil {
		return nil, err
	}
	r.created = created
	return productAnswer(&p), nil
}

// readProduct reads the body that describes a product, and notes what is bad
// about it. What is left out is as in a product that nobody has described.
func readProduct(body []byte, bad *problems) (licensing.PutProduct, error) {
	var name, prefix, validity, from text
	var devices, removals integer
	var selfService flag
	var extra object
	err := decodeObject(body, true,
		textMember("name", &name),
		textMember("key_prefix", &prefix),
		integerMember("max_devices", &devices),
		textMember("validity", &validity),
		textMember("validity_from", &from),
		flagMember("self_service_deactivation", &selfService),
		integerMember("removals_per_month", &removals),
		objectMember("metadata", &extra),
	)
	if err != nil {
		return licensing.PutProduct{}, err
	}
	terms := licensing.DefaultTerms()
	bad.line("name", name, maxProductName)
	if prefix.given {
		if terms.KeyPrefix = prefix.value; !licensing.ValidKeyPrefix(prefix.value) {
			bad.add("key_prefix", "must be 2 to 8 of the characters A-Z 0-9")
		}
	}
	bad.integer("max_devices", devices, false, 0, maxMaxDevices)
	if devices.given {
		terms.MaxDevices = int(devices.value)
	}
	terms.Validity = bad.period("validity", validity)
	if terms.FromActivation = from.value == fromActivation; from.given && !terms.FromActivation && from.value != fromIssue {
		bad.add("validity_from", "must be "+fromIssue+" or "+fromActivation)
	}
	bad.integer("removals_per_month", removals, false, 0, maxRemovals)
	terms.SelfService = licensing.SelfService{Allowed: selfService.value, RemovalsPerMonth: int(removals.value)}
	bad.metadata("metadata", extra)
	return licensing.PutProduct{Name: name.value, Terms: terms, Metadata: extra.value}, nil
}

// getProduct looks a product up.
func (s *Server) getProduct(r *request) (any, error) {
	id, err := existingProductID(r)
	if err != nil {
		return nil, err
	}
	p, err := s.cfg.Node.Product(r.ctx, r.caller.Owner, id)
	if err != nil {
		return nil, err
	}
	return productAnswer(&p), nil
}

// deleteProduct removes a product.
func (s *Server) deleteProduct(r *request) (any, error) {
	id, err := existingProductID(r)
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Node.DeleteProduct(r.ctx, r.caller.Owner, id); err != nil {
		return nil, err
	}
	return struct {
		ProductID string `json:"product_id"`
		Deleted   bool   `json:"deleted"`
	}{id, true}, nil
}

// existingProductID gives the id in the path. What has not the form of one is no
// product's, which needs no look into the store.
func existingProductID(r *request) (string, error) {
	id := r.value("product_id")
	if !validProductID(id) {
		return "", licensing.ErrProductNotFound
	}
	return id, nil
}
