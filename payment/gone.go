package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
)

// A provider that does not know an object of our records mostly has another account's secret key, or a mistyped key. So
// that answer is a failure like any other: the service asks again, and a paid checkout is recorded once the key is
// right. A provider deletes nothing in live mode. In test mode, the shop may have deleted its test data, and the
// service gives up in the end. Only the refunds of canceled orders and of second payments stay due: their buyers get
// all back.

// goneAfter is how many questions about an order of test mode must fail before an unknown object counts as deleted. The
// questions take more than two days; see licensing.PutOffAsk and licensing.TryRefund.
const goneAfter = 60

// gone reports whether the provider has deleted an object of an order's records. failures counts the questions that
// have failed before, and err is the provider's error.
func gone(order *licensing.Order, failures int, err error) bool {
	return errors.Is(err, ErrUnknownObject) && order.Owner.Mode == licensing.Test && failures >= goneAfter
}

// lost returns the error for a client when the provider has failed to answer about an object of our records.
func lost(object Object, err error) error {
	if errors.Is(err, ErrUnknownObject) {
		err = fmt.Errorf("%w, the %s %s, which it has made: is the secret key that of another account?", err,
			object.Kind, object.ID)
	}
	return providerFailed(err)
}

// The owner of an order may have another provider than the order, or none. Then no provider can answer about the order.
// The operator may set the earlier provider up again, as after a mistake in the configuration, so the service asks
// again for a while. In live mode the while is longer: a buyer may have paid.

// movedAfter is how long after the end of a checkout, or of the paid period of a subscription, the service gives up in
// live mode. The slowest payments take two weeks.
const movedAfter = 30 * 24 * time.Hour

// moved is the answer to a question about the checkout or the subscription of an order whose provider the owner does
// not have any more. over reports that the service gives up; otherwise moved puts off the question.
func (b *backend) moved(ctx context.Context, order licensing.Order) (over bool, err error) {
	recent := b.node.Now().Sub(order.AskedUntil()) < movedAfter
	if order.AskFailures >= goneAfter && (order.Owner.Mode == licensing.Test || !recent) {
		b.node.ReportMoved(order)
		return true, nil
	}
	_, err = b.node.ChangeCheckout(ctx, order, licensing.PutOffAsk{Asked: order.AskAt})
	return false, err
}
