package apidoc

// operation is what the types of a route do not say.
type operation struct {
	id      string // the name of the operation in generated clients
	summary string // what the route does
	section string // of docs/reference/api.md
	example string // the golden file of handlers with the example; empty: none
}

// operations has one row for each route.
func operations() map[string]operation {
	return map[string]operation{
		"POST /v1/licenses/activate": {
			"activate", "binds a device to a license", "activate-a-license", "activate",
		},
		"POST /v1/licenses/validate": {
			"validateLicense", "reports whether a device may use a license", "validate-a-license", "validate",
		},
		"POST /v1/licenses/deactivate": {
			"deactivate", "frees the slot of a device for its user", "deactivate-a-device", "deactivate",
		},
		"POST /v1/receipts": {
			"makeReceiptFile", "binds a device without network and makes its receipt file", "make-a-receipt-file",
			"receipt_file",
		},
		"POST /v1/receipts/batch": {
			"makeReceiptFiles", "makes the receipt files of many devices without network", "make-many-receipt-files",
			"receipt_files",
		},
		"POST /v1/receipts/release": {
			"releaseSeat", "frees the device slot that a device without network has given back",
			"release-a-device-slot", "released",
		},
		"POST /v1/trials": {
			"startTrial", "issues a license for a trial and binds the device", "start-a-trial", "trial",
		},
		"POST /v1/licenses": {
			"grantLicenses", "grants licenses without an order", "grant-licenses", "grant",
		},
		"GET /v1/licenses": {
			"listLicenses", "lists licenses", "lists", "licenses_page",
		},
		"GET /v1/licenses/{license_key}": {
			"getLicense", "looks up a license", "look-up-a-license", "license_with_devices",
		},
		"PATCH /v1/licenses/{license_key}": {
			"updateLicense", "changes device limit, metadata and entitlements", "update-a-license", "license_updated",
		},
		"POST /v1/licenses/{license_key}/suspend": {
			"suspendLicense", "suspends a license", "suspend-reinstate-or-revoke-a-license", "license_suspended",
		},
		"POST /v1/licenses/{license_key}/reinstate": {
			"reinstateLicense", "ends a suspension", "suspend-reinstate-or-revoke-a-license", "license_reinstated",
		},
		"POST /v1/licenses/{license_key}/revoke": {
			"revokeLicense", "disables a license for good", "suspend-reinstate-or-revoke-a-license", "license_revoked",
		},
		"POST /v1/licenses/{license_key}/renew": {
			"renewLicense", "moves the end of a license", "renew-a-license", "license_renewed",
		},
		"POST /v1/licenses/{license_key}/reissue": {
			"reissueLicense", "gives a license a new key", "reissue-a-license", "license_reissued",
		},
		"GET /v1/licenses/{license_key}/devices": {
			"listDevices", "lists the devices of a license", "list-the-devices-of-a-license", "devices_page",
		},
		"GET /v1/licenses/{license_key}/events": {
			"listLicenseEvents", "lists the events of a license", "list-the-events-of-a-license-or-an-order",
			"license_events",
		},
		"DELETE /v1/licenses/{license_key}/devices/{device_id}": {
			"removeDevice", "frees the slot of a device", "remove-a-device", "device_removed",
		},
		"GET /v1/products": {
			"listProducts", "lists products", "lists", "products_page",
		},
		"PUT /v1/products/{product_id}": {
			"putProduct", "creates or replaces a product", "create-or-replace-a-product", "product_put",
		},
		"GET /v1/products/{product_id}": {
			"getProduct", "looks up a product", "look-up-a-product", "product_get",
		},
		"DELETE /v1/products/{product_id}": {
			"deleteProduct", "deletes a product", "delete-a-product", "product_delete",
		},
		"POST /v1/products/{product_id}/rollout": {
			"beginRollout", "applies a product's terms to earlier licenses", "roll-out-a-products-terms",
			"rollout_begun",
		},
		"GET /v1/products/{product_id}/rollout": {
			"getRollout", "shows the latest rollout of a product", "roll-out-a-products-terms", "rollout_done",
		},
		"DELETE /v1/products/{product_id}/rollout": {
			"cancelRollout", "cancels a rollout", "roll-out-a-products-terms", "rollout_canceled",
		},
		"POST /v1/orders": {
			"createOrder", "creates an order", "create-an-order", "order_full",
		},
		"GET /v1/orders": {
			"listOrders", "lists orders", "lists", "orders_page",
		},
		"GET /v1/orders/{order_no}": {
			"getOrder", "looks up an order", "look-up-an-order", "order_get_paid",
		},
		"GET /v1/orders/{order_no}/events": {
			"listOrderEvents", "lists the events of an order", "list-the-events-of-a-license-or-an-order",
			"order_events",
		},
		"POST /v1/orders/{order_no}/cancel": {
			"cancelOrder", "cancels an unpaid order", "cancel-an-order", "order_cancel",
		},
		"PUT /v1/orders/{order_no}/sandbox_payment": {
			"payOrderInSandbox", "pays an order of test mode", "pay-an-order-in-the-sandbox", "order_sandbox_payment",
		},
		"PUT /v1/orders/{order_no}/sandbox": {
			"playInSandbox", "plays what a buyer or a bank does about an order of test mode", "play-in-the-sandbox",
			"order_sandbox_pay_later",
		},
		"POST /v1/orders/{order_no}/payments": {
			"recordPayment", "records a payment that the shop has received itself", "record-an-outside-payment",
			"order_payment",
		},
		"GET /v1/orders/{order_no}/payments": {
			"listPayments", "lists the payments of an order", "list-the-payments-of-an-order", "payments_page",
		},
		"POST /v1/orders/{order_no}/refund": {
			"refundOrder", "refunds a paid order", "refund-an-order", "order_refund",
		},
		"POST /v1/orders/{order_no}/subscription/cancel": {
			"cancelSubscription", "ends a subscription", "cancel-or-resume-a-subscription", "subscription_cancel",
		},
		"POST /v1/orders/{order_no}/subscription/resume": {
			"resumeSubscription", "lets a subscription renew that would end", "cancel-or-resume-a-subscription",
			"subscription_resume",
		},
		"POST /v1/orders/{order_no}/subscription/change": {
			"changeSubscription", "changes the product, amount or devices of a subscription", "change-a-subscription",
			"subscription_change",
		},
		"POST /v1/orders/{order_no}/subscription/portal": {
			"openPortal", "makes a link to the provider's page for the card of a subscription",
			"change-the-card-of-a-subscription", "subscription_portal",
		},
		"GET /v1/reports/sales": {
			"reportSales", "sums payments and refunds", "report-sales", "report_sales",
		},
		"POST /v1/redactions": {
			"redactBuyer", "removes the personal data of a buyer", "redact-a-buyer", "redaction",
		},
		"GET /v1/events": {
			"listEvents", "reads the event feed", "read-the-feed", "events",
		},
		"GET /v1/events/{event_id}": {
			"getEvent", "looks up an event", "look-up-an-event", "event",
		},
		"POST /v1/webhook_endpoints": {
			"createWebhook", "creates a webhook endpoint", "create-an-endpoint", "webhook_create",
		},
		"GET /v1/webhook_endpoints": {
			"listWebhooks", "lists endpoints", "look-up-an-endpoint", "webhooks_page",
		},
		"GET /v1/webhook_endpoints/{endpoint_id}": {
			"getWebhook", "looks up an endpoint", "look-up-an-endpoint", "webhook",
		},
		"PATCH /v1/webhook_endpoints/{endpoint_id}": {
			"updateWebhook", "changes, disables or enables an endpoint", "change-an-endpoint", "webhook_update",
		},
		"DELETE /v1/webhook_endpoints/{endpoint_id}": {
			"deleteWebhook", "deletes an endpoint", "delete-an-endpoint", "webhook_delete",
		},
		"POST /v1/webhook_endpoints/{endpoint_id}/rotate": {
			"rotateWebhook", "replaces the secret of an endpoint", "rotate-the-secret-of-an-endpoint", "webhook_rotate",
		},
		"POST /v1/webhook_endpoints/{endpoint_id}/test": {
			"testWebhook", "sends a test message to an endpoint", "test-an-endpoint", "webhook_test_refused",
		},
		"GET /v1/webhook_endpoints/{endpoint_id}/deliveries": {
			"listDeliveries", "lists deliveries to an endpoint", "list-the-deliveries-of-an-endpoint",
			"webhook_deliveries",
		},
		"POST /v1/webhook_endpoints/{endpoint_id}/replay": {
			"replayWebhook", "delivers events again", "replay-events", "webhook_replay_dead",
		},
		"GET /v1/account": {
			"getAccount", "shows the settings, the stored data and the budget of the account", "the-account", "account",
		},
		"PATCH /v1/account": {
			"updateAccount", "changes the settings of the account", "the-account", "account_updated",
		},
		"PUT /v1/receipt_keys": {
			"makeReceiptKeys", "shows the keys that sign receipts, and makes them if there are none", "receipt-keys",
			"receipt_keys",
		},
		"PUT /v1/receipt_keys/next": {
			"rotateReceiptKeys", "adds a key that signs receipts", "receipt-keys", "receipt_keys_rotated",
		},
		"GET /v1/accounts/{account_id}/{mode}/jwks.json": {
			"getReceiptKeySet", "serves the signed set of receipt keys", "receipt-keys", "jwks",
		},
		"GET /v1/accounts/{account_id}/{mode}/revocations": {
			"getRevocations", "serves the signed list of revocations", "revocations",
			"revocations",
		},
		"POST /v1/callbacks/stripe/{account_id}/{mode}": {
			"takeStripeCallback", "takes a callback of Stripe", "callbacks-of-stripe", "",
		},
		"POST /v1/keys": {
			"createAPIKey", "creates an API key", "create-an-api-key", "key_created",
		},
		"GET /v1/keys": {
			"listAPIKeys", "lists API keys", "lists", "keys_page",
		},
		"GET /v1/keys/{key_id}": {
			"getAPIKey", "looks up an API key", "look-up-an-api-key", "key_get",
		},
		"DELETE /v1/keys/{key_id}": {
			"revokeAPIKey", "revokes an API key", "revoke-an-api-key", "key_revoked",
		},
		"POST /v1/keys/{key_id}/rotate": {
			"rotateAPIKey", "replaces the secret of an API key", "rotate-the-secret-of-an-api-key", "key_rotated",
		},
		"GET /pay/{order_no}/{token}": {
			"showOrder", "shows the pay page", "the-pay-page", "",
		},
		"POST /pay/{order_no}/{token}": {
			"payOrCancel", "accepts the form of the pay page", "the-pay-page", "",
		},
		"GET /openapi.yaml": {
			"getOpenAPI", "serves this API as an OpenAPI document in YAML", "the-api-document", "",
		},
		"GET /openapi.json": {
			"getOpenAPIAsJSON", "serves this API as an OpenAPI document in JSON", "the-api-document", "",
		},
		"GET /docs": {
			"showReference", "shows this API in a browser", "the-docs-in-a-browser", "",
		},
		"GET /docs/errors": {
			"showErrors", "shows the meaning of each error code", "the-docs-in-a-browser", "",
		},
		"GET /docs/viewer.js": {
			"getViewer", "serves the script that draws the API", "the-docs-in-a-browser", "",
		},
		"GET /": {
			"showHome", "shows the first steps, of `licet dev`", "the-docs-in-a-browser", "",
		},
		"GET /favicon.ico": {
			"getIcon", "serves the icon of the pages", "the-docs-in-a-browser", "",
		},
		"GET /robots.txt": {
			"getRobots", "keeps crawlers off", "the-docs-in-a-browser", "",
		},
		"GET /livez": {
			"live", "reports whether the process runs", "probes-and-metrics", "livez",
		},
		"GET /readyz": {
			"ready", "reports whether the node accepts requests", "probes-and-metrics", "readyz",
		},
	}
}
