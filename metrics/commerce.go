package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Commerce are the instruments of orders and their money.
type Commerce struct {
	// Orders counts the orders that this node has brought into a state: created, paid,
	// canceled, expired or refunded.
	Orders *prometheus.CounterVec
	// PaymentRequests counts what a payment provider was asked for, begin or refund,
	// by how that ended: ok, redirect (the buyer goes on to pay there), refused (for
	// good) or failed (which leaves open what became of it).
	PaymentRequests *prometheus.CounterVec
	// PaymentDuration is how long that took, in seconds.
	PaymentDuration *prometheus.HistogramVec
	// RefundsDue is how many orders' money is to go back and has not, as the last
	// pass over them found; all nodes find the same.
	RefundsDue prometheus.Gauge
	// Refunds counts the steps of refunds that were made here, by outcome: asked (the
	// provider was about to be), made (it is recorded) or refused (for good).
	Refunds *prometheus.CounterVec
}

func newCommerce(factory promauto.Factory) Commerce {
	return Commerce{
		Orders: vector(factory,
			"licet_orders_total",
			"Orders that this node has brought into a state.",
			[]string{"state"}, each("created", "paid", "canceled", "expired", "refunded")...),
		PaymentRequests: vector(factory,
			"licet_payment_requests_total",
			"Requests to payment providers, by what was asked for and how that ended.",
			[]string{"operation", "outcome"}, [][]string{{"begin", "ok"}, {"begin", "redirect"}, {"begin", "failed"}, {"refund", "ok"}, {"refund", "refused"}, {"refund", "failed"}}...),
		PaymentDuration: factory.NewHistogramVec(histogram(
			"licet_payment_request_duration_seconds",
			"Time of one request to a payment provider.",
			providerBuckets,
		), []string{"operation"}),
		RefundsDue: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_refunds_due",
			Help: "Orders whose money is to go back and has not yet, as the last pass found, up to 1000. All nodes find the same.",
		}),
		Refunds: vector(factory,
			"licet_refunds_total",
			"Steps of refunds: the provider was asked, the refund was made, or the provider has refused it.",
			[]string{"outcome"}, each("asked", "made", "refused")...),
	}
}
