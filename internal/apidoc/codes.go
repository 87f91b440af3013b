package apidoc

import "licet/licensing"

// meanings describes when a request gets a code.
func meanings() map[licensing.Reason]string {
	return map[licensing.Reason]string{
		"malformed_request": "the framing of the request is ambiguous; or the body is not a JSON object, or has a " +
			"repeated member, a member of the wrong type, or, except on open routes, an unknown member",
		"invalid_license_key": "the text does not have the form of a license key, or its check characters are wrong, " +
			"as after a typo. With `account_id`: also, the account has no external keys",
		"unauthenticated":    "no valid API key on a route that requires one, or invalid credentials on any route",
		"invalid_signature":  "the signature is wrong; `message` says why",
		"signature_required": "the API key requires signed requests, and the request is not signed",
		"forbidden": "the API key lacks the scope, or may not rotate the secret of the other key; or the form of the " +
			"pay page came from another site",
		"license_revoked":   "activation of a revoked license",
		"license_suspended": "activation of a suspended license",
		"license_expired":   "activation of an expired license",
		"product_mismatch":  "the license is for another product than the `product_id` of the activation",
		"self_service_not_allowed": "the license's terms do not let end users remove devices, or the removals of " +
			"this calendar month (UTC) are used up. `details` in the second case: `removals_per_month`",
		"license_key_replaced": "activation or deactivation with a key that a [reissue](#reissue-a-license) has " +
			"replaced",
		"trial_used": "the device or the e-mail address has had its [trial](#start-a-trial) of the product, or an " +
			"order has upgraded the trial",
		"trial_not_offered": "the product offers no trial",
		"account_budget_reached": "the account stores as much in this mode as its storage budget allows; nothing " +
			"changed. `details`: `stored_bytes`, `stored_keys`, `limit_bytes`, `limit_keys`",
		"not_found": "no such route, or the path can't be decoded; for a set of receipt keys: no such account, or it " +
			"has no keys",
		"license_not_found": "no such license for this caller",
		"device_not_found":  "no such device (reserved: removing a device that is not bound succeeds)",
		"order_not_found":   "no such order for this caller",
		"product_not_found": "no such product for this caller. In test mode, an order or a grant creates the " +
			"product",
		"webhook_endpoint_not_found": "no such webhook endpoint for this caller",
		"event_not_found":            "no such event for this caller, or the event is no longer kept",
		"api_key_not_found": "no such API key for this caller; for a rotation also: the key is revoked or " +
			"expired",
		"rollout_not_found":    "the product has never had a rollout",
		"method_not_allowed":   "the route does not have this method; see `Allow`",
		"request_in_progress":  "a request with the same Idempotency-Key is running",
		"device_limit_reached": "all slots are taken; nothing changed. `details`: `max_devices`, `current_devices`",
		"invalid_order_state": "the state of the order does not allow the cancellation, the payment or the refund, " +
			"or the subscription does not allow the change",
		"invalid_license_state": "the state of the license does not allow the change",
		"payment_not_configured": "no payment provider is set up for live orders with an amount and their refunds; " +
			"or the account no longer has the order's provider; or the provider has no page where buyers change " +
			"their card",
		"webhook_limit": "the account has 16 webhook endpoints in this mode, the maximum: delete one first. " +
			"`details`: `max_endpoints`",
		"replay_limit": "16 replays are waiting for this endpoint. Wait until one is done, or enable the endpoint if " +
			"it is disabled",
		"external_key_in_use": "another license of the account and mode has this `external_key`",
		"rollout_in_progress": "another rollout of the product is under way: it applies other terms, or earlier " +
			"values of the product",
		"setting_fixed": "`external_keys` can't change once the account has external keys in this mode",
		"reissue_limit": "the license has had 8 new keys, the maximum",
		"api_key_limit": "the account has as many API keys in this mode as it may have, by default 1,000: revoke one " +
			"first. Revoked and expired keys don't count. `details`: `max_api_keys`. Or the account has 16 receipt " +
			"keys: wait until one leaves the set. `details`: `max_receipt_keys`",
		"cursor_expired": "the events after this event or cursor are no longer kept: start again without the event " +
			"or cursor",
		"body_too_large":         "the body is longer than the route allows",
		"uri_too_long":           "the URI is longer than 4 KiB",
		"unsupported_media_type": "the body is in another `Content-Type` or has a `Content-Encoding`",
		"invalid_field": "a required member is missing or null, or a value, query parameter or cursor is invalid. " +
			"`fields` lists each problem",
		"idempotency_key_reused": "the Idempotency-Key was used for another request",
		"rate_limited":           "a rate limit is exceeded; nothing changed",
		"headers_too_large":      "the request line and the headers are longer than 12 KiB",
		"internal":               "a bug in the service; its log has the cause under the request id",
		"provider_failed": "the payment provider refused the request or did not answer; nothing changed here, except " +
			"that a refund may be under way (`refund_due`)",
		"unavailable": "not executed, and never will be: the store can't be reached, is almost full or full, the " +
			"node is shutting down, or its clock differs from the clocks of most nodes",
		"overloaded": "not executed, and never will be: the request would have waited too long",
		"outcome_unknown": "executed, or not executed, or yet to be executed. Without an Idempotency-Key, do not " +
			"repeat orders, grants, extensions, new API keys, endpoints and secrets, and replays: the operation " +
			"could run twice",
	}
}
