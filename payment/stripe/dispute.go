package stripe

import (
	"context"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/payment"
)

func (p *Provider) lookAtDispute(ctx context.Context, id string) (payment.State, error) {
	dispute := &sdk.Dispute{}
	err := p.get(ctx, sdk.FormatURLPath("/v1/disputes/%s", id), &sdk.DisputeRetrieveParams{}, dispute,
		"payment_intent", "charge")
	if err != nil {
		return payment.State{}, err
	}
	state := payment.State{
		Object:  payment.Object{Kind: payment.ObjectDispute, ID: dispute.ID},
		Outcome: disputeOutcome(dispute),
		Live:    dispute.Livemode,
		At:      moment(dispute.Created),
	}
	if dispute.PaymentIntent != nil {
		state.Payment = dispute.PaymentIntent.ID
		state.OrderNo = dispute.PaymentIntent.Metadata[metaOrder]
	}
	state.Fee = disputeFee(dispute)
	if state.OrderNo == "" && state.Payment != "" {
		if state.OrderNo, state.Invoice, err = p.invoiceOf(ctx, state.Payment); err != nil {
			return payment.State{}, err
		}
	}
	return withAmount(withCharged(state, dispute.Charge), dispute.Amount, dispute.Currency)
}

// disputeFee returns what Stripe keeps for a dispute so far; nil: Stripe has moved no money for it, or has moved it in
// the currency of the shop's bank account, which is another one.
func disputeFee(dispute *sdk.Dispute) *int64 {
	sum := int64(0)
	for _, moved := range dispute.BalanceTransactions {
		if moved.Currency != dispute.Currency {
			return nil
		}
		sum += moved.Fee
	}
	fee, err := fromStripe(sum, currencyCode(dispute.Currency))
	if err != nil || len(dispute.BalanceTransactions) == 0 {
		return nil
	}
	return &fee
}

// disputeOutcome returns the outcome of a dispute. An inquiry of the bank (warning_…) that ends takes no money. Stripe
// prevents a dispute either by a block or by giving the buyer the money back: the movements of money say which.
func disputeOutcome(dispute *sdk.Dispute) payment.Outcome {
	switch dispute.Status {
	case sdk.DisputeStatusWon, sdk.DisputeStatusWarningClosed:
		return payment.OutcomeWon
	case sdk.DisputeStatusLost:
		return payment.OutcomeLost
	case sdk.DisputeStatusPrevented:
		sum := int64(0)
		for _, moved := range dispute.BalanceTransactions {
			sum += moved.Amount // in the currency of the shop's bank account
		}
		if sum < 0 {
			return payment.OutcomeLost
		}
		return payment.OutcomeWon
	default:
		return payment.OutcomeOpen
	}
}
