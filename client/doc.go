// Package client calls a Licet service from Go: one method for each route of
// docs/reference/api.md.
//
// A shop makes an order, sends its buyer to the pay page, and later asks what
// has become of it:
//
//	shop, err := client.New("https://licenses.example.com", os.Getenv("LICET_API_KEY"))
//	order, err := shop.CreateOrder(ctx, client.NewOrder{ProductID: "editor", Amount: 4900, Currency: "USD"})
//	// … the buyer pays at order.PayURL …
//	order, err = shop.Order(ctx, order.OrderNo)
//	fmt.Println(order.Status, order.LicenseKey)
//
// The program that was sold activates its license on the device it runs on. It
// has no API key, so its client has none either:
//
//	program, err := client.New("https://licenses.example.com", "")
//	activation, err := program.Activate(ctx, client.Activation{LicenseKey: key, DeviceID: fingerprint})
//	if client.HasReason(err, client.ReasonDeviceLimitReached) {
//		// all slots are taken
//	}
//
// # Answers
//
// A member that is null in an answer is the zero value of its field here: an
// empty string, a time for which IsZero is true. Metadata is left as JSON, to be
// decoded into whatever was encoded; in requests it is anything that
// encoding/json makes an object of. [Record] keeps an answer as it came.
//
// # Errors
//
// What the service refuses is an [*Error], with its code and reason, each bad
// field, and the id under which the service's log has the request. Other errors
// tell that no answer came.
//
// # Retries
//
// A request that failed and may help if sent again is sent again, with a growing
// and jittered pause and never sooner than the service asks for: 42900, 503xx,
// 40900 and 50400, and where no answer came. This is safe. A request that does
// the same whenever it is sent is sent as it is; every other one carries an
// Idempotency-Key, made by the client unless the caller gives one with
// [IdempotencyKey]. Give one to make a thing that must be made once even if the
// program dies meanwhile and starts again. After half a minute, or what [RetryFor]
// says, the last error is returned; so it is when ctx ends.
//
// Two answers can't be had again in this way: the secrets that [Client.CreateKey]
// and [Client.RotateKey] answer are shown once. If that answer is lost they return
// [ErrSecretLost].
//
// # Lists
//
// [Client.ListOrders] and its like read one page. [Client.Orders] and its like
// read page after page, as they are ranged over:
//
//	for order, err := range shop.Orders(ctx, client.OrderFilter{Status: "paid"}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(order.OrderNo)
//	}
package client
