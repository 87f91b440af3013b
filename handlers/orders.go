package handlers

import (
	"encoding/json"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/service"
)

// order is the answer of everything that is about one order.
type order struct {
	OrderNo     string                `json:"order_no"`
	Status      licensing.OrderStatus `json:"status"`
	ProductID   string                `json:"product_id"`
	Amount      int64                 `json:"amount"`
	Currency    string                `json:"currency"`
	Description *string               `json:"description"`
	BuyerEmail  *string               `json:"buyer_email"`
	Metadata    json.RawMessage       `json:"metadata"`
	PayURL      *string               `json:"pay_url"`
	CreatedAt   timestamp             `json:"created_at"`
	ExpiresAt   timestamp             `json:"expires_at"`
	PaidAt      timestamp             `json:"paid_at"`
	CanceledAt  timestamp             `json:"canceled_at"`
	RefundedAt  timestamp             `json:"refunded_at"`
	LicenseKey  *licensing.LicenseKey `json:"license_key"`
	Late        bool                  `json:"late"`
	SuccessURL  *string               `json:"success_url"`
	StateReason *string               `json:"state_reason"`
	RefundDue   bool                  `json:"refund_due"`
	AccountID   string                `json:"account_id"`
	Mode        licensing.Mode        `json:"mode"`
}

func (s *Server) orderAnswer(o *licensing.Order) order { return s.orderAnswerAt(o, s.cfg.Node.Now()) }

// orderAnswerAt is what was answered of an order at a time.
func (s *Server) orderAnswerAt(o *licensing.Order, at time.Time) order {
	status := o.Status(at)
	answer := order{
		OrderNo:     o.OrderNo,
		Status:      status,
		ProductID:   o.ProductID,
		Amount:      o.Amount,
		Currency:    o.Currency,
		Description: optional(o.Description),
		BuyerEmail:  optional(o.BuyerEmail),
		Metadata:    metadata(o.Metadata),
		CreatedAt:   timestamp(o.CreatedAt),
		ExpiresAt:   timestamp(o.ExpiresAt),
		PaidAt:      timestamp(o.PaidAt),
		CanceledAt:  timestamp(o.CanceledAt),
		RefundedAt:  timestamp(o.RefundedAt),
		LicenseKey:  optional(o.LicenseKey),
		Late:        o.Late,
		SuccessURL:  optional(o.SuccessURL),
		StateReason: optional(o.StateReason),
		RefundDue:   o.RefundDue,
		AccountID:   o.Owner.AccountID,
		Mode:        o.Owner.Mode,
	}
	if status == licensing.OrderUnpaid {
		pay := s.cfg.PublicURL + payPath(o)
		answer.PayURL = &pay
	}
	return answer
}

// createOrder makes an order.
func (s *Server) createOrder(r *request) (any, error) {
	var bad problems
	in, err := readOrder(r.body(), &bad)
	if err != nil {
		return nil, err
	}
	in.By, in.Once = r.actor(), bad.once(r)
	if err := bad.err(); err != nil {
		return nil, err
	}
	o, replayed, err := s.cfg.Node.CreateOrder(r.ctx, r.caller.Owner, in)
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	return s.orderAnswer(&o), nil
}

// readOrder reads the body of a new order, and notes what is bad about it.
func readOrder(body []byte, bad *problems) (service.NewOrder, error) {
	var product, code, description, email, success text
	var amount integer
	var extra object
	err := decodeObject(body, true,
		textMember("product_id", &product),
		integerMember("amount", &amount),
		textMember("currency", &code),
		textMember("description", &description),
		textMember("buyer_email", &email),
		objectMember("metadata", &extra),
		textMember("success_url", &success),
	)
	if err != nil {
		return service.NewOrder{}, err
	}
	bad.productID("product_id", product)
	bad.amount("amount", amount)
	currency := bad.currency("currency", code)
	bad.description("description", description)
	bad.email("buyer_email", email)
	bad.metadata("metadata", extra)
	bad.successURL("success_url", success)
	return service.NewOrder{
		ProductID:   product.value,
		Amount:      amount.value,
		Currency:    currency,
		Description: description.value,
		BuyerEmail:  email.value,
		Metadata:    extra.value,
		SuccessURL:  success.value,
	}, nil
}

// getOrder looks an order up.
func (s *Server) getOrder(r *request) (any, error) {
	o, err := s.cfg.Node.Order(r.ctx, r.callerOwner(), r.value("order_no"))
	if err != nil {
		return nil, err
	}
	return s.orderAnswer(&o), nil
}

// cancelOrder gives an unpaid order up.
func (s *Server) cancelOrder(r *request) (any, error) {
	return s.changeOrder(r, func(orderNo, reason string, once *node.Once) (licensing.Order, bool, error) {
		return s.cfg.Node.ChangeOrder(r.ctx, r.caller.Owner, orderNo, licensing.CancelOrder{By: r.actor(), Reason: reason}, once)
	})
}

// refundOrder sends a paid order's money back, and revokes its license.
func (s *Server) refundOrder(r *request) (any, error) {
	return s.changeOrder(r, func(orderNo, reason string, once *node.Once) (licensing.Order, bool, error) {
		return s.cfg.Desk.Refund(r.ctx, r.caller.Owner, orderNo, licensing.RequestRefund{By: r.actor(), Reason: reason}, once)
	})
}

// changeOrder reads a request that may give a reason, and makes its change.
func (s *Server) changeOrder(r *request, change func(orderNo, reason string, once *node.Once) (o licensing.Order, replayed bool, err error)) (any, error) {
	in, err := readStateChange(r)
	if err != nil {
		return nil, err
	}
	if in.invalid != nil {
		return nil, in.invalid
	}
	o, replayed, err := change(r.value("order_no"), in.reason, in.once)
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	return s.orderAnswer(&o), nil
}
