// Package client calls a Licet service from Go: one method for each route of docs/reference/api.md. Installed programs
// call the methods of [Client], such as [Client.Activate]. Shops call the methods of the services that are fields of
// Client, such as [OrderService.Create] of Client.Orders. Package client/webhook receives webhooks, and package
// cmd/licet/internal/cli contains the commands that call this client.
//
// The requests and responses here, such as [NewOrder] and [Order], are exported structs with json tags. The service has
// structs of its own for the same JSON, in package handlers: unexported, with tags of paths and queries and a check
// method. The records that a service stores are in package licensing. Outside of tests, this package imports no other
// package of the module.
//
// A shop creates an order, sends its customer to the pay page, and later reads the order again:
//
//	shop, err := client.New("https://licenses.example.com", os.Getenv("LICET_API_KEY"))
//	order, err := shop.Orders.Create(ctx, client.NewOrder{ProductID: "editor", Amount: 4900, Currency: "USD"})
//	// … the customer pays at order.PayURL …
//	order, err = shop.Orders.Get(ctx, order.OrderNo)
//	fmt.Println(order.Status, order.LicenseKey)
//
// The program that the shop sold activates its license on the device where it runs. The program has no API
// key, so its client has none either:
//
//	program, err := client.New("https://licenses.example.com", "")
//	activation, err := program.Activate(ctx, client.Activation{LicenseKey: key, DeviceID: fingerprint})
//	if client.HasReason(err, client.ReasonDeviceLimitReached) {
//		// all slots are taken
//	}
//
// # Responses
//
// A member that is null in a response is the zero value of its field: an empty string, or a time for which
// IsZero is true. Metadata in a response is raw JSON. Metadata in a request is any value that encoding/json
// encodes as an object. [Record] keeps the response itself.
//
// # Errors
//
// If the service refuses a request, the error is an [*Error]. It has the code, the reason, each invalid field,
// and the id of the request in the service's log. Any other error means that no response came.
//
// # Retries
//
// The client sends a failed request again if that is safe and may help: after 42900, 503xx, 40900 and 50400, and
// if no response came. The pauses grow, have jitter, and are never shorter than the service demands. Repeated
// requests are safe: they are either idempotent, or carry an Idempotency-Key. The client makes the key, unless
// the caller passes one with [IdempotencyKey]. Pass one if a thing must be created once even if the program dies
// and starts again. The client gives up after 30 seconds, or the time set by [RetryFor], or when ctx ends, and
// returns the last error.
//
// Some responses can't be repeated: the service shows the secrets of [APIKeyService.Create], [APIKeyService.Rotate],
// [WebhookService.Create] and [WebhookService.Rotate] once. If such a response is lost, the method returns
// [ErrSecretLost].
//
// # Lists
//
// Methods like [OrderService.List] read one page. Methods like [OrderService.All] read page after page:
//
//	for order, err := range shop.Orders.All(ctx, client.OrderFilter{Status: "paid"}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(order.OrderNo)
//	}
//
// # Files
//
//   - client.go: the client, its services and its options
//   - request.go: one call: its path, its body, its headers
//   - retry.go: sends a call until it succeeds, fails for good, or its time is over
//   - response.go: reads a response, or reports that no Licet service has responded
//   - errors.go: the error of a refused request as a client decodes it, and the reasons of errors
//   - signing.go: signs requests with the API secret
//   - lists.go: pages, and iterators over all pages of a list
//   - orders.go: orders, their payments and refunds
//   - subscriptions.go: the subscriptions of orders
//   - sandbox.go: payments of the sandbox, and what else happens to its orders
//   - products.go: products
//   - rollouts.go: rollouts of a product's terms to earlier licenses
//   - licenses.go: licenses, their changes, and their devices
//   - activations.go: activate, validate and deactivate
//   - trials.go: trials
//   - entitlements.go: what a license lets its user do
//   - keys.go: API keys
//   - account.go: the settings of an account, how much it stores, and its budget
//   - receiptkeys.go: the keys that sign receipts, and receipts for devices without network
//   - documents.go: the open documents: sets of receipt keys, lists of revocations
//   - redactions.go: removal of a buyer's personal data
//   - reports.go: reports of sales
//   - events.go: the feed of events, and the events of an order or a license; their names are in webhook
//   - webhooks.go: webhook endpoints, and test messages
//   - deliveries.go: deliveries to endpoints, and replays
package client
