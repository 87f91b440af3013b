package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Commerce contains the instruments of orders, payments and refunds.
type Commerce struct {
	// Orders counts the orders that this node has moved into a state: created, paid, canceled,
	// expired or refunded.
	Orders *prometheus.CounterVec
	// PaymentRequests counts requests to payment providers, by operation (begin, look, end, refund, change or portal)
	// and outcome: ok, redirect (the customer pays at the provider), refused (for good) or failed (the outcome is
	// unknown).
	PaymentRequests *prometheus.CounterVec
	// PaymentDuration is the duration of a request to a payment provider, in seconds.
	PaymentDuration *prometheus.HistogramVec
	// RefundsDue is the number of orders with an open refund, as of the last pass over them. All
	// nodes find the same number.
	RefundsDue prometheus.Gauge
	// Refunds counts steps of refunds on this node, by outcome: asked (before the request to the
	// provider), made (recorded), refused (for good) or returned (failed after it was made).
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
			[]string{"operation", "outcome"}, [][]string{
				{"begin", "ok"}, {"begin", "redirect"}, {"begin", "refused"}, {"begin", "failed"},
				{"look", "ok"}, {"look", "failed"}, {"end", "ok"}, {"end", "failed"},
				{"change", "ok"}, {"change", "refused"}, {"change", "failed"},
				{"portal", "ok"}, {"portal", "refused"}, {"portal", "failed"},
				{"refund", "ok"}, {"refund", "refused"}, {"refund", "failed"},
			}...),
		PaymentDuration: factory.NewHistogramVec(histogram(
			"licet_payment_request_duration_seconds",
			"Time of one request to a payment provider.",
			providerBuckets,
		), []string{"operation"}),
		RefundsDue: factory.NewGauge(prometheus.GaugeOpts{
			Name: "licet_refunds_due",
			Help: "Orders whose money is to go back and has not yet, as the last pass found, up to 1000. All nodes " +
				"find the same.",
		}),
		Refunds: vector(factory,
			"licet_refunds_total",
			"Steps of refunds: the provider was asked, the refund was made, the provider has refused it, or the "+
				"refund has failed after it was made.",
			[]string{"outcome"}, each("asked", "made", "refused", "returned")...),
	}
}
