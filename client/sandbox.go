package client

import "context"

// SandboxService plays what buyers and banks do about orders of test mode. No money moves.
type SandboxService struct{ client *Client }

// Pay pays an order of test mode, as the buyer does on the pay page; no money moves. Paying a paid order
// changes nothing. The service refuses orders of live mode with ReasonPaymentNotConfigured.
func (s *SandboxService) Pay(ctx context.Context, orderNo string, options ...CallOption) (*Order, error) {
	return s.client.order(ctx, "PUT /v1/orders/{order_no}/sandbox_payment", []string{orderNo}, nil, options)
}

// SandboxAction is something that a buyer or a bank does about an order of test mode.
type SandboxAction string

// The actions.
const (
	SandboxPay           SandboxAction = "pay"       // as [SandboxService.Pay]
	SandboxCancel        SandboxAction = "cancel"    // the buyer cancels the order
	SandboxDecline       SandboxAction = "decline"   // the bank declines the payment
	SandboxPayLater      SandboxAction = "pay_later" // the payment is pending
	SandboxComplete      SandboxAction = "complete"  // the pending payment arrives
	SandboxFail          SandboxAction = "fail"      // the pending payment or refund fails
	SandboxCallbackTwice SandboxAction = "callback_twice"
	SandboxCallbackLate  SandboxAction = "callback_late"
	SandboxRefundFails   SandboxAction = "refund_fails" // the next refund is pending, and then fails

	SandboxInvoicePaid        SandboxAction = "invoice_paid"   // the unpaid invoice is paid, or else the next one
	SandboxInvoiceFailed      SandboxAction = "invoice_failed" // the payment of the next invoice fails
	SandboxCancelSubscription SandboxAction = "cancel_subscription"
)

// Play plays an action about an order of test mode, and returns the order after that. The service refuses an
// action that does not fit the order with ReasonInvalidOrderState, and orders of live mode with
// ReasonPaymentNotConfigured.
func (s *SandboxService) Play(
	ctx context.Context, orderNo string, action SandboxAction, options ...CallOption,
) (*Order, error) {
	in := struct {
		Action SandboxAction `json:"action"`
	}{action}
	return s.client.order(ctx, "PUT /v1/orders/{order_no}/sandbox", []string{orderNo}, in, options)
}
