package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// orderRoutes are the functions of the routes of orders.
type orderRoutes struct{ *Server }

// order is an order as responses show it.
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
	LicenseID   *string               `json:"license_id"`
	LicenseKey  *string               `json:"license_key"`
	Quantity    int                   `json:"quantity"`
	Issued      int                   `json:"licenses_issued"`
	LicenseKeys *[]string             `json:"license_keys"`
	UpgradeOf   *string               `json:"upgrade_of"`
	Late        bool                  `json:"late"`
	SuccessURL  *string               `json:"success_url"`
	StateReason *string               `json:"state_reason"`
	RefundDue   bool                  `json:"refund_due"`
	Paid        int64                 `json:"amount_paid"`
	Refunded    int64                 `json:"amount_refunded"`
	Refunding   int64                 `json:"refund_pending"`
	Fee         *int64                `json:"fee"`
	Provider    *string               `json:"payment_provider"`
	Reference   *string               `json:"payment_reference"`
	// Subscription is left out of an order that is paid once, and until the payment.
	Subscription *subscription  `json:"subscription,omitempty"`
	AccountID    string         `json:"account_id"`
	Mode         licensing.Mode `json:"mode"`
}

// answer shows an order in a list.
func (s orderRoutes) answer(o *licensing.Order) order { return s.orderAnswer(o, s.cfg.Node.Now()) }

// alone shows one order, with the keys of its licenses. Along with an error it shows their first keys.
func (s orderRoutes) alone(ctx context.Context, o *licensing.Order) (order, error) {
	keys, err := s.cfg.Node.OrderKeys(ctx, o)
	answer := s.answer(o)
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = s.keys.Text(key)
	}
	answer.LicenseKeys = &texts
	return answer, err
}

// orderAnswer shows an order as of a time, without the keys of its licenses except the first.
func (r *renderer) orderAnswer(o *licensing.Order, at time.Time) order {
	status := o.Status(at)
	due, refunding := o.RefundsDue()
	answer := order{
		OrderNo:      o.OrderNo,
		Status:       status,
		ProductID:    o.ProductID,
		Amount:       o.Amount,
		Currency:     o.Currency,
		Description:  orNull(o.Description),
		BuyerEmail:   orNull(o.BuyerEmail),
		Metadata:     metadata(o.Metadata),
		CreatedAt:    timestamp(o.CreatedAt),
		ExpiresAt:    timestamp(o.ExpiresAt),
		PaidAt:       timestamp(o.PaidAt),
		CanceledAt:   timestamp(o.CanceledAt),
		RefundedAt:   timestamp(o.RefundedAt),
		Quantity:     o.Licenses(),
		Issued:       o.Issued(),
		Late:         o.Late,
		SuccessURL:   orNull(o.SuccessURL),
		StateReason:  orNull(o.StateReason),
		RefundDue:    due,
		Paid:         o.AmountPaid(),
		Refunded:     o.AmountRefunded(),
		Refunding:    refunding,
		Fee:          o.Fee,
		Provider:     orNull(string(o.PaidThrough())),
		Reference:    orNull(o.Payment),
		Subscription: subscriptionAnswer(o),
		AccountID:    o.Owner.AccountID,
		Mode:         o.Owner.Mode,
	}
	if status == licensing.OrderUnpaid {
		answer.PayURL = r.payLinks.of(o)
	}
	if !o.LicenseKey.IsZero() {
		answer.LicenseID, answer.LicenseKey = orNull(o.LicenseKey.ID().String()), orNull(r.keys.Text(o.LicenseKey))
	}
	if !o.UpgradeOf.IsZero() {
		answer.UpgradeOf = orNull(r.keys.Text(o.UpgradeOf))
	}
	return answer
}

// newOrder asks for an order.
type newOrder struct {
	ProductID      text    `json:"product_id"`
	Amount         integer `json:"amount"`
	Currency       text    `json:"currency"`
	Quantity       integer `json:"quantity"`
	Description    text    `json:"description"`
	BuyerEmail     text    `json:"buyer_email"`
	Metadata       object  `json:"metadata"`
	SuccessURL     text    `json:"success_url"`
	UpgradeOf      text    `json:"upgrade_of"`
	Provider       text    `json:"payment_provider"`
	idempotencyKey `json:"-"`

	currency string // canonical
	trial    licensing.LicenseKey
}

func (in *newOrder) check(c *checks) {
	c.productID("product_id", in.ProductID)
	c.integer("amount", in.Amount, true, 0, licensing.MaxAmount)
	in.currency = c.currency("currency", in.Currency)
	c.integer("quantity", in.Quantity, false, 1, licensing.MaxQuantity)
	c.description("description", in.Description)
	c.email("buyer_email", in.BuyerEmail, false)
	c.metadata("metadata", in.Metadata)
	c.successURL("success_url", in.SuccessURL)
	if !c.describe("upgrade_of", Limits{Format: formatLicenseKey}) && in.UpgradeOf.given {
		var err error
		if in.trial, _, err = c.parsedKey("upgrade_of", in.UpgradeOf); err != nil {
			c.add("upgrade_of", "must be a license key: this text has a typo or a wrong form")
		}
		if in.Amount.given && in.Amount.value == 0 {
			c.add("upgrade_of", "must be left out of a free order: paying upgrades a trial")
		}
		if in.Quantity.value > 1 {
			c.add("quantity", "must be 1 if upgrade_of is set: upgrade_of names one license")
		}
	}
	outside := string(licensing.ProviderOutside)
	switch {
	case c.describe("payment_provider", Limits{Enum: []string{outside}}) || !in.Provider.given:
	case in.Provider.value != outside:
		c.add("payment_provider", "must be "+outside+", or be left out")
	case in.Amount.given && in.Amount.value == 0:
		c.add("payment_provider", "must be left out of a free order: a free order has no payment")
	}
}

// createOrder makes an order.
func (s orderRoutes) createOrder(ctx context.Context, c *call, in newOrder) (order, error) {
	trial, err := s.cfg.Node.ResolveKey(ctx, in.trial, c.owner(), netip.Addr{})
	if err != nil {
		return order{}, err
	}
	quantity := int(in.Quantity.value)
	if quantity > 1 {
		if err := s.responses.reserve(c, quantity*keyInOrder); err != nil {
			return order{}, err
		}
		s.rates.chargeLicenses(c, quantity)
	}
	o, replayed, err := s.cfg.Node.CreateOrder(ctx, c.owner(), service.NewOrder{
		ProductID:   in.ProductID.value,
		Amount:      int64(in.Amount.value),
		Currency:    in.currency,
		Quantity:    quantity,
		Description: in.Description.value,
		BuyerEmail:  in.BuyerEmail.value,
		Metadata:    string(in.Metadata.value),
		SuccessURL:  in.SuccessURL.value,
		UpgradeOf:   trial,
		Outside:     in.Provider.given,
		By:          c.actor(),
		Once:        in.once,
	})
	return s.changedOrder(ctx, c, &o, replayed, err)
}

// keyInOrder is more than a license key takes in a response.
const keyInOrder = 48

// changedOrder answers an order that the request has changed. Licenses that can't be read are shown with their first
// keys: an error would say that the change did not happen.
func (s orderRoutes) changedOrder(
	ctx context.Context, c *call, o *licensing.Order, replayed bool, err error,
) (order, error) {
	c.replayed = replayed
	if err != nil {
		return order{}, err
	}
	answer, _ := s.alone(ctx, o)
	return answer, nil
}

// orderPath names an order.
type orderPath struct {
	OrderNo text `path:"order_no" json:"-"`
}

// getOrder looks an order up.
func (s orderRoutes) getOrder(ctx context.Context, c *call, in orderPath) (order, error) {
	o, err := s.cfg.Node.Order(ctx, c.owner(), in.OrderNo.value)
	if err != nil {
		return order{}, err
	}
	answer, err := s.alone(ctx, &o)
	if err != nil {
		return order{}, err
	}
	return answer, nil
}

// orderChange asks to change the state of an order.
type orderChange struct {
	orderPath
	stateChange
}

// cancelOrder cancels an unpaid order.
func (s orderRoutes) cancelOrder(ctx context.Context, c *call, in orderChange) (order, error) {
	change := licensing.CancelOrder{By: c.actor(), Reason: in.Reason.value}
	o, replayed, err := s.cfg.Node.ChangeOrder(ctx, c.owner(), in.OrderNo.value, change, in.once)
	if err == nil && !replayed {
		s.cfg.Desk.Canceled(ctx, o)
	}
	return s.changedOrder(ctx, c, &o, replayed, err)
}

// refundRequest asks to refund a paid order.
type refundRequest struct {
	orderPath
	Amount  integer `json:"amount"`
	Invoice text    `json:"invoice"`
	stateChange
}

func (in *refundRequest) check(c *checks) {
	c.integer("amount", in.Amount, false, 1, licensing.MaxAmount)
	in.stateChange.check(c)
	switch {
	case c.describe("invoice", Limits{MinLength: 1, MaxLength: maxPaymentReference, Pattern: patternOneLine}):
	case !in.Invoice.given:
	case in.Invoice.value == "":
		c.add("invoice", "must not be empty")
	case in.Reason.given:
		c.add("invoice", "can't be combined with reason: the order keeps its status and the reason of that status")
	default:
		c.line("invoice", in.Invoice, maxPaymentReference)
	}
}

// refundOrder refunds a paid order, or a part of its payment. Once nothing is left, it revokes the license. It may also
// refund an invoice of the order's subscription.
func (s orderRoutes) refundOrder(ctx context.Context, c *call, in refundRequest) (order, error) {
	c.repeatable = !in.Amount.given // a part would be refunded again
	if in.Invoice.given {
		o, replayed, err := s.cfg.Desk.RefundInvoice(ctx, c.owner(), in.OrderNo.value, in.Invoice.value,
			licensing.RequestReturn{By: c.actor(), Amount: int64(in.Amount.value)}, in.once)
		return s.changedOrder(ctx, c, &o, replayed, err)
	}
	refund := licensing.RequestRefund{By: c.actor(), Reason: in.Reason.value, Amount: int64(in.Amount.value)}
	o, replayed, err := s.cfg.Desk.Refund(ctx, c.owner(), in.OrderNo.value, refund, in.once)
	if err == nil {
		s.cfg.Node.ShowCurrentKey(ctx, &o)
	}
	return s.changedOrder(ctx, c, &o, replayed, err)
}

// outsidePayment says that the shop has received the payment of an order itself.
type outsidePayment struct {
	orderPath
	Reference      text    `json:"reference"`
	Amount         integer `json:"amount"`
	PaidAt         text    `json:"paid_at"`
	idempotencyKey `json:"-"`

	paidAt time.Time
}

func (in *outsidePayment) check(c *checks) {
	switch {
	case c.describe("reference",
		Limits{Required: true, MinLength: 1, MaxLength: maxPaymentReference, Pattern: patternOneLine}):
	case !in.Reference.given:
		c.add("reference", problemRequired)
	case in.Reference.value == "":
		c.add("reference", "must not be empty")
	default:
		c.line("reference", in.Reference, maxPaymentReference)
	}
	c.integer("amount", in.Amount, false, 1, licensing.MaxAmount)
	if in.paidAt = c.timestamp("paid_at", in.PaidAt); in.paidAt.IsZero() {
		return
	}
	switch now := c.server.cfg.Node.Now(); {
	case in.paidAt.After(now.Add(paidAtAhead)):
		c.add("paid_at", "must not be in the future")
	case in.paidAt.After(now):
		in.paidAt = now
	case in.paidAt.Year() < earliestPayment:
		c.add("paid_at", fmt.Sprintf("must not be before %d", earliestPayment))
	}
}

const (
	maxPaymentReference = 255
	earliestPayment     = 2000
	// paidAtAhead is how far the clock of a shop may be ahead: until then paid_at counts as now.
	paidAtAhead = 5 * time.Minute
)

// recordPayment records a payment that the shop has received itself.
func (s orderRoutes) recordPayment(ctx context.Context, c *call, in outsidePayment) (order, error) {
	payment := service.OutsidePayment{
		Reference: in.Reference.value, PaidAt: in.paidAt, By: c.actor(), Once: in.once,
	}
	if in.Amount.given {
		payment.Amount = new(int64(in.Amount.value))
	}
	o, replayed, err := s.cfg.Node.RecordPayment(ctx, c.owner(), in.OrderNo.value, payment)
	if err == nil {
		s.cfg.Node.ShowCurrentKey(ctx, &o)
	}
	return s.changedOrder(ctx, c, &o, replayed, err)
}

// buyerRedaction asks to redact a buyer's orders and licenses, or the licenses of a customer.
type buyerRedaction struct {
	BuyerEmail     text `json:"buyer_email"`
	Reference      text `json:"customer_reference"`
	idempotencyKey `json:"-"`
}

func (in *buyerRedaction) check(c *checks) {
	c.email("buyer_email", in.BuyerEmail, false)
	c.customerReference("customer_reference", in.Reference)
	switch {
	case !in.BuyerEmail.given && !in.Reference.given:
		c.add("buyer_email", "is required unless customer_reference is set")
	case in.BuyerEmail.given && in.Reference.given:
		c.add("customer_reference", "can't be combined with buyer_email")
	}
}

// redaction is the progress of the redaction of a customer.
type redaction struct {
	Orders   int  `json:"orders"`
	Licenses int  `json:"licenses"`
	Complete bool `json:"complete"`
}

// redactBuyer removes what the shop has noted about a buyer. The answer does not repeat the
// buyer's address.
func (s orderRoutes) redactBuyer(ctx context.Context, c *call, in buyerRedaction) (redaction, error) {
	done, replayed, err := s.cfg.Node.Redact(ctx, c.owner(),
		licensing.Customer{BuyerEmail: in.BuyerEmail.value, Reference: in.Reference.value}, in.once)
	c.replayed = replayed
	return redaction(done), err
}
