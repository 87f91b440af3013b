package apidoc

import "maps"

// members describes members and parameters. A name that means something else in one schema, or in one operation, has a
// row of its own there: License.status, listOrders.status.
func members() map[string]string {
	all := orderMembers()
	maps.Copy(all, moneyMembers())
	maps.Copy(all, receiptKeyMembers())
	maps.Copy(all, map[string]string{
		"accepted":     "true",
		"account_id":   "the account",
		"action":       "the pressed button",
		"activated_at": "the first activation ever, or null; it never changes",
		"actor": "who made the change: the id of an API key, `end_user`, `provider` (of payments), or " +
			"`system`",
		"amount":             "in the minor unit of the currency: 4900 means 49.00 USD, or 4900 JPY",
		"answer":             "the first 1 KiB of the body of the receiver's last answer, or null",
		"api_key":            "the API key, shown once; null later",
		"api_secret":         "the secret that signs requests, shown once; null later",
		"at":                 "when the attempt was made",
		"attempts":           "the attempts, the oldest first",
		"behind":             "true if more events are waiting than the service looked at",
		"bound_at":           "when the device was bound; null for a device that found no slot",
		"budget_bytes":       "the storage budget in bytes; 0: none",
		"budget_keys":        "the storage budget in keys; 0: none",
		"buyer_email":        "the e-mail address of the buyer",
		"customer_reference": "the shop's own name for the customer",
		"complete": "true if all orders and granted licenses of the buyer at the time of the request, or all " +
			"licenses with the reference, are redacted. One request redacts up to 100 of each: if false, repeat it",
		"created_at":      "when the service created the object",
		"currency":        "ISO 4217 code, in any case; responses have it in upper case",
		"current_devices": "number of bound devices",
		"cursor":          "a `next_cursor` of an earlier page, unchanged",
		"data":            "what the event changed, as a lookup right after the change would show it",
		"dead":            "`true`: all messages that the service has given up",
		"days_before_end": "how many days before the end of the license the event was due; only of " +
			"`license.expiring`",
		"deleted":             "true",
		"deliveries":          "the deliveries",
		"delivered":           "whether the receiver accepted the message",
		"delivery":            "how deliveries to the endpoint go; some moments old",
		"description":         "for people",
		"device":              "the device of the event, for the types that have one",
		"device_id":           "what identifies the device, such as a fingerprint of its hardware; compared exactly",
		"device_name":         "the name of the device, for people; null if no request has named it",
		"devices":             "the bound devices",
		"devices_next_cursor": "the cursor at which the list of devices continues after these, or null",
		"disabled_at":         "when the endpoint was disabled",
		"disabled_because": "`by_user`, or a reason of the service: `gone`, `failing`, `dead_letters`; null " +
			"while the endpoint is enabled",
		"dry_run":     "true: the rollout changes nothing and only counts",
		"duration_ms": "how long the attempt took",
		"ended_at":    "when the rollout ended; null: not yet",
		"endpoint_id": "the webhook endpoint",
		"event_id":    "the event",
		"event_type":  "the type of the event",
		"event_types": "the types of events that the endpoint gets; `*` alone: all",
		"events":      "the events",
		"expires_at":  "when the validity ends; null: never",
		"expiring_days": "how many days before the end of a license the service records `license.expiring`, each " +
			"once; empty: never. The default is 30, 7, 1",
		"external_key":        "the key of the license at the service that sold it before, or null",
		"external_keys":       "how external keys are matched: `exact`, or `compact`, ignoring case, blanks and dashes",
		"external_keys_fixed": "whether `external_keys` can't change any more, because the account has external keys",
		"failed":              "number of licenses that could not be changed",
		"failing_since":       "since when no message has been delivered, or null",
		"failure":             "why the attempt failed; null: delivered",
		"has_more":            "whether more events are available now",
		"grace": "true: the license has expired, and this device may use it until `grace_ends_at`; see " +
			"[Grace](#grace)",
		"grace_ends_at": "until when bound devices may use the license after `expires_at`; null: there is no grace",
		"id":            "the id of the object",
		"key_id":        "the API key",
		"key_prefix":    "the beginning of license keys",
		"keys":          "the API keys",
		"last_seen_at":  "when the device was last seen, to about a minute",
		"device_mode":   "`bound`: devices are bound until they are removed; `leased`: see [Leases](#leases)",
		"component_names": "the names of the components that activations of the device have named; " +
			"left out: none. See " +
			"[Devices that change](#devices-that-change)",
		"device_components": "up to eight components of the device: names of `[a-z0-9._-]{1,32}`, each with " +
			"the SHA-256 of a text as 64 hex digits. Without effect unless the product has `device_match`. See " +
			"[Devices that change](#devices-that-change)",
		"device_match": "which unknown devices are bound devices that have changed; left out: none. See " +
			"[Devices that change](#devices-that-change)",
		"at_least":          "how many components must be equal",
		"changes_per_month": "how many devices of a license may change in a calendar month of UTC",
		"inactive_after": "how long a device must be unseen before an activation of a full license may take " +
			"its slot; " +
			"null: no device loses its slot. See [Inactive devices](#inactive-devices)",
		"EventData.account":  "what the account stores, and its limits; only of `account.budget_warning`",
		"EventData.reason":   "why the service has removed the device: `inactive`. Left out: a request has removed it",
		"previous_device_id": "the id of the device before",
		"changed_components": "the names of the components that differ from those before",
		"lease_expires_at": "when the device loses its slot unless it renews its lease; null: it has no lease. See " +
			"[Leases](#leases)",
		"lease_remaining_seconds": "how long the device still has its lease, counted from when it sent the request; " +
			"null: it has none",
		"lease_seconds": "the length of the lease that the device asks for, cut to the product's " +
			"`max_lease_seconds`; left out: the product's. Without effect on licenses without leases",
		"max_lease_seconds": "the longest lease that a device may ask for; null without leases",
		"last_success_at":   "when a message was last delivered; null: none yet",
		"last_used_at":      "when the API key was last used, to about a minute; null: never",
		"late":              "whether the order was paid after it had expired; late payments are honored",
		"license":           "the license, without its devices",
		"license_key":       "the license key",
		"license_keys":      "the keys of all licenses of the order so far, in a fixed order; null in lists and events",
		"licenses_issued":   "how many licenses the order has; all come within a minute after the payment",
		"licenses":          "the licenses",
		"limit":             "maximum number of items of the page. Left out: 20",
		"limit_bytes":       "where ordinary growth ends, in bytes; 0: nowhere",
		"limits_kept": "number of licenses that keep their `max_devices`, because more devices are bound than the " +
			"product allows",
		"limit_keys":  "where ordinary growth ends, in keys; 0: nowhere",
		"max_devices": "maximum number of devices; 0: unlimited",
		"entitlements": "what the license lets its users do: a value for each code, without ended entitlements; see " +
			"[Entitlements](#entitlements)",
		"metadata": "an object of the shop's own, at most 16 KiB as compact JSON; kept unchanged, except white " +
			"space",
		"mode":            "the mode of the account; orders of test mode move no money",
		"name":            "for people",
		"next_attempt_at": "when the service tries the next time, or null",
		"next_cursor":     "the cursor of the next page; null at the end",
		"order":           "the order",
		"order_no":        "the order",
		"orders":          "the orders",
		"paid_at":         "when the order was paid",
		"pay_url": "where the buyer pays; null unless the order is unpaid, and in an event also once the order " +
			"has been paid or canceled, or has expired",
		"pending":               "number of messages that failed and will be tried again",
		"previous_secret_until": "until when the previous secret is valid too, or null",
		"product_id":            "the product",
		"products":              "the products",
		"quantity":              "number of licenses",
		"reason":                "why, for people; line breaks are allowed",
		"removals_per_month":    "how many devices end users may remove in a calendar month (UTC); 0: any number",
		"removed":               "whether the device was bound",
		"reissue_reason":        "the reason of the latest reissue, or null",
		"reissued_at":           "when the license got its present key; null: it has its first one",
		"reissues":              "how many new keys the license has got",
		"require_signature":     "whether requests with the API key must be signed",
		"revision": "the revision of the change in the store. Events with the same revision were made in one " +
			"transaction",
		"revoked_at":                "when the object was revoked",
		"scopes":                    "what the API key may do",
		"secret":                    "the secret that signs messages, shown once; null later",
		"self_service_deactivation": "whether end users may deactivate devices themselves",
		"since":                     "only events after this one; left out: from the oldest kept event",
		"skipped_at": "when the service last found that events were removed before their delivery, or " +
			"null",
		"started_at":        "when the rollout began; the licenses that were issued up to then get the terms",
		"state_reason":      "the reason of the present status, from the request; else null",
		"stored_bytes":      "what the account stores, in bytes",
		"stored_keys":       "what the account stores, in keys",
		"success_url":       "where the result page leads the buyer after payment",
		"suspended_at":      "when the license was suspended",
		"timestamp":         "the time of the change, by the clock of the node that made it",
		"terms":             "which terms of the product",
		"token":             "the secret of the address",
		"trial":             "whether the license is for a [trial](#start-a-trial) that no order has upgraded",
		"upgrade_of":        "the key of the [trial](#start-a-trial) that the payment upgrades",
		"type":              "what has happened; skip types that you don't know",
		"types":             "only events of these types, with commas between",
		"updated":           "number of licenses that the rollout has changed, or in a dry run would change",
		"until":             "only events up to this one, which is included; not before `since`",
		"url":               "where the service sends events",
		"valid":             "whether the device may use the license",
		"validity":          "how long a license is valid; null: for ever",
		"validity_from":     "whether the validity runs from `issue` or from the first `activation`",
		"wait":              "how many seconds to wait if there is no event. Left out: 0",
		"webhook":           "the webhook endpoint, without its secret and the state of its deliveries",
		"webhook_endpoints": "the webhook endpoints",

		"Path.license_key": "the `id` of the license, or one of its license keys. The id is no secret, so it belongs " +
			"in URLs; keys do not, since proxies log URLs",

		"ActivationRequest.account_id": pinnedAccount, "ValidationRequest.account_id": pinnedAccount,
		"DeactivationRequest.account_id": pinnedAccount,
		"ActivationRequest.device_name": "left out: the earlier name stays. A bound device gets a new name at most " +
			"once a minute",
		"ActivationRequest.license_key": "in any case, spaces around it allowed; `O` is read as `0`, `I` and `L` as " +
			"`1`. Along with `account_id`, it may also be an external key of that account",
		"ActivationRequest.mode": pinnedMode, "ValidationRequest.mode": pinnedMode,
		"DeactivationRequest.mode":     pinnedMode,
		"ActivationRequest.product_id": "the license must be for this product, else 40304",
		"ValidationRequest.product_id": "the license must be for this product, else it is not valid",
		"Validation.reason":            "null if the license is valid; else the first of these that applies",

		"Activation.status": licenseStatus, "License.status": licenseStatus, "EventLicense.status": licenseStatus,
		"Validation.status": licenseStatus,
		"Grant.expires_at": "in the future; along with `external_key` also in the past, for a license that has " +
			"expired. Left out: by the product's validity",
		"Grant.external_key": "the key of the license at the service that sold it: printable characters, which are " +
			"stored in Unicode's form NFC, without spaces around them. It activates the license too, and finds it in " +
			"lists. `quantity` must be 1. A license key or an id of this service: 42200",
		"Grant.buyer_email": "the e-mail address of the buyer of each license; its domain has a dot or is " +
			"`localhost`",
		"Grant.customer_reference": "the shop's own name for the customer, such as a number, for each license",
		"Grant.max_devices":        "0: unlimited. Left out: the product's",
		"Grant.entitlements": "of each license, besides those of the product: see [Entitlements](#entitlements); " +
			"null takes away what the product has",
		"Grant.metadata": "of each license, at most 16 KiB as compact JSON; along with `entitlements` at most 1 MiB " +
			"for all licenses of the request together",
		"LicenseChange.reason": "shown as `state_reason` while the license is suspended or revoked; the reason of a " +
			"reinstatement is not kept",
		"License.devices": "up to 16 devices in the order they were bound; above 16, at most the first 1,000 in the " +
			"order of the list of devices",
		"License.order_no":      "null for a granted license",
		"EventLicense.order_no": "null for a granted license",
		"LicenseUpdate.max_devices": "0: unlimited. It may be below `current_devices`: bound devices stay, and no " +
			"new device is bound",
		"License.buyer_email": "the e-mail address of the buyer of a granted license, or of the user of a " +
			"trial; null for a license with an order: the order names the buyer",
		"EventLicense.buyer_email": "the e-mail address of the buyer of a granted license, or of the user of a " +
			"trial; null for a license with an order: the order names the buyer",
		"LicenseUpdate.buyer_email": "the e-mail address of the buyer; null removes it. A license with an " +
			"order takes none: 42200",
		"LicenseUpdate.customer_reference": "the shop's own name for the customer; null removes it",
		"LicenseUpdate.entitlements": "changes of the license's own: each code replaces that code, null takes the " +
			"entitlement away; see [Entitlements](#entitlements)",
		"LicenseUpdate.metadata": "merged into the existing metadata: each member replaces the member of its name, " +
			"and `null` removes it. At most 50 members and 16 KiB after the merge",
		"Reissue.overlap": "how long bound devices may still use the earlier keys: weeks, or days, hours, minutes " +
			"and seconds, `PT0S` to `P30D`. Left out: `PT0S`",
		"Reissue.reason":        "shown as `reissue_reason` until the next reissue",
		"Renewal.expires_at":    "the new end, in the future; it may be before the current end",
		"listLicenses.status":   "only licenses with this status now",
		"listLicenses.order_no": "only the license of an order",
		"listLicenses.buyer_email": "only licenses of a buyer, by the e-mail address of the license or of its order, " +
			"in any case. Percent-encode a `+`",
		"listLicenses.customer_reference": "only licenses with a customer's reference, compared exactly",
		"listLicenses.external_key":       "only the license with an external key",
		"listLicenses.product_id":         "only licenses of a product",
		"listDeliveries.status":           "only deliveries with this status. Left out: all, in this order",

		"Product.grace": "how long bound devices may go on after the end of a license; null: not at all",
		"ProductDescription.grace": "how long bound devices may go on after the end of a license, at most `P1Y`; see " +
			"[Grace](#grace). Left out: not at all",
		"receipt": "the [receipt](#receipts-of-activations), with which the device checks its license without a " +
			"network; left out: none",
		"ActivationRequest.receipt": askedReceipt, "ValidationRequest.receipt": askedReceipt,
		"TrialRequest.receipt": askedReceipt,
		"receipt_seconds":      "for how long the receipt is to be valid at most. Left out: as the product says",
		"device_key": "an Ed25519 public key of the device, 32 bytes in base64url. The receipt names the key, which " +
			"may [give the device slot back](#release-a-device-slot). Needs `nonce`",
		"license_id": "the id of the license",
		"request":    "the armored text that the device has made", "receipt_file": "the armored receipt file",
		"requests": "the armored texts that devices have made",
		"results":  "one result for each request, in the order of the requests",

		"ReceiptResult.file": "the receipt file for the request; left out: there is none",
		"ReceiptResult.failure": "the body of the [error](#error-codes) that the request alone would get; left out: " +
			"none",
		"release":          "the armored text that the device has signed",
		"Released.removed": "whether the device was bound, and was not bound again since",
		"nonce": "a text that the receipt repeats. A receipt with a nonce is always a new one; without it, an " +
			"unchanged license and device get the same receipt again within a minute",
		"Product.receipt":            "whether activations, validations and trials carry a receipt unasked",
		"ProductDescription.receipt": "whether activations and the like carry a receipt unasked. Left out: false",
		"receipt_validity":           "how long a receipt is valid",
		"ProductDescription.receipt_validity": "how long a receipt is valid: `PT1M` to `P90D`, without years and " +
			"months. Left out: `P7D`",
		"revocation_max_age":   "how long a receipt counts without a newer [list](#revocations); if none, to its end",
		"getRevocations.after": "the `epoch` of a list that the client has: the answer may be what came later",

		"Path.account_id": "the account", "Path.mode": "`test` or `live`", "received": "the callback is done",

		"ProductDescription.key_prefix": "the beginning of license keys. Left out: `LIC`",
		"Product.lease_seconds":         "the length of a lease; null without leases",
		"License.lease_seconds":         "the length of a lease; null without leases",
		"License.grace": "how long bound devices may use the license after its end: an ISO 8601 duration; null: " +
			"no [grace](#grace)",
		"entitlement_ends":                 "when entitlements end: a time for each code that ends by itself",
		"ProductDescription.device_mode":   "`leased`: floating licenses, see [Leases](#leases). Left out: `bound`",
		"ProductDescription.lease_seconds": "the length of a lease; required along with `leased`",
		"ProductDescription.inactive_after": "an ISO 8601 duration of at least `P1D`; needs `max_devices` of 1 to " +
			"10,000, " +
			"and no leases. See [Inactive devices](#inactive-devices). Left out: no device loses its slot",
		"ProductDescription.device_match": "an object with `at_least`, 1 to 8, and `changes_per_month`, 1 to 1000, " +
			"left out: 4; needs `max_devices` of 1 to 16, and no leases. " +
			"See [Devices that change](#devices-that-change). " +
			"Left out: no device changes",
		"ProductDescription.max_lease_seconds": "the longest lease that a device may ask for. Left out: " +
			"`lease_seconds`",
		"ProductDescription.max_devices": "of new licenses; 0: unlimited; 1 to 10,000 along with `leased`. Left out: 3",
		"Product.entitlements":           "of new licenses, as they were put",
		"ProductDescription.entitlements": "of new licenses, at most 64: see [Entitlements](#entitlements). " +
			"Left out: `{}`",
		"ProductDescription.metadata": "at most 16 KiB as compact JSON. Left out: `{}`",
		"ProductDescription.name":     "for people, such as buyers on the pay page",
		"ProductDescription.removals_per_month": "how many devices end users may remove in a calendar month (UTC); " +
			"0: any number. Left out: 0",
		"ProductDescription.self_service_deactivation": "whether end users may deactivate devices themselves. Left " +
			"out: false",
		"ProductDescription.validity": "how long a license is valid; responses show weeks as days. Left out: for ever",
		"ProductDescription.validity_from": "whether the validity runs from `issue` or from the first `activation`. " +
			"Left out: `issue`",

		"Product.trial": "how the product may be [tried](#start-a-trial), as it was put; `{}`: not at all",
		"ProductDescription.trial": "how the product may be [tried](#start-a-trial): `validity`, and `per` `device` " +
			"or `email`; optional `max_devices` (1 to 16; left out: 1) and `entitlements` (in place of the " +
			"product's). Left out: `{}`, not at all",
		"TrialRequest.account_id": "the account of the product; required without an API key",
		"TrialRequest.mode":       "the mode of the product. Left out: that of the API key, or `live`",
		"TrialRequest.buyer_email": "the e-mail address of the user, which is not verified; look-ups show it, " +
			"answers to devices do not. Required for a product with trials per `email`",

		"NewRollout.terms":   "which terms of the product to apply, each once",
		"NewRollout.dry_run": "true: change nothing and only count. Left out: false",
		"Rollout.status": "`running`; `paused`: the account has reached its storage budget, and the rollout tries " +
			"again by itself; `done` or `canceled`",
		"Rollout.licenses": "number of the product's licenses that were issued before, as far as the rollout has come",

		"Order.quantity":    "how many licenses the order is for",
		"NewOrder.quantity": "how many licenses the order is for; `amount` is for all of them. Left out: 1",
		"NewOrder.success_url": "where the result page leads the buyer after payment: `https://` (`http://` for " +
			"`localhost` and loopback addresses), percent-encoded, without user information and fragment; the host " +
			"and the port are checked as for a webhook endpoint",
		"NewOrder.metadata": "any JSON as values, at most 16 KiB as compact JSON; kept unchanged, except white space",
		"Order.expires_at":  "until when the order can be paid in time",
		"License.id":        "the id of the license, for URLs and logs: an id activates nothing",
		"Order.license_id":  "the id of the license; set once paid",
		"Order.license_key": "the key of the first license; set once paid. It stays after a refund, which revokes it",
		"Order.status":      "`expired`: not paid by `expires_at`",
		"Redaction.orders":  "number of redacted orders",
		"Redaction.licenses": "number of redacted licenses: of the orders, and granted licenses of the buyer; with " +
			"`customer_reference`, licenses with that reference",
		"BuyerRedaction.buyer_email": "the e-mail address of the buyer; required without `customer_reference`, and " +
			"not allowed with it",
		"BuyerRedaction.customer_reference": "the shop's own name for the customer, compared exactly",

		"Event.id": "the id of the event, the same in the feed, in lists and in webhooks",
		"sequence": "counts the events of this order or license, of all webhook endpoints, or of the budget of the " +
			"account and mode: 1, 2, 3 and so on, without gaps",
		"listDevices.limit":    "maximum number of devices. Left out: 100",
		"NewOrder.buyer_email": "the e-mail address of the buyer; its domain has a dot or is `localhost`",
		"extend": "of whole numbers, such as `P1M`, `P1Y` or `P30D`, up to 1,000 years (hours, minutes and seconds: " +
			"100). It counts from the current end, or from now if that is past. A license without an end can't be " +
			"extended: 42200",
		"overlap": "how long the previous secret stays valid too: weeks, or days, hours, minutes and seconds, " +
			"`PT0S` to `P30D`. Left out: `PT24H`",
		"WebhookEndpoint.previous_secret_until": twoSecrets, "IssuedWebhook.previous_secret_until": twoSecrets,
		"WebhookWithDelivery.previous_secret_until": twoSecrets,

		"EventFeed.next_cursor": "always set: later events come after it",
		"listEvents.after": "only events after the event with this id; `now`: after the end of the feed. Left out: " +
			"from the oldest kept event. An unknown event: 42200",
		"listEvents.cursor": "a `next_cursor` of an earlier page, instead of `after`. `types` may differ from the " +
			"earlier request",

		"NewWebhook.event_types": "`*` alone for all, or one or more types, each once. Left out: all",
		"NewWebhook.url": "`https://`, at most 2,048 characters, percent-encoded, without user information and " +
			"fragment, at port 443 or a port that the operator allows. The address must be public, unless the " +
			"operator allows it. `licet dev` also accepts this machine, at any port and by `http://`",
		"WebhookUpdate.description":  "an empty text removes it",
		"WebhookUpdate.event_types":  "as for a new endpoint; applies to messages sent from then on",
		"WebhookUpdate.url":          "as for a new endpoint",
		"WebhookUpdate.status":       "to disable or to enable the endpoint",
		"WebhookEndpoint.status":     endpointStatus,
		"WebhookWithDelivery.status": endpointStatus, "IssuedWebhook.status": endpointStatus,
		"DeliveryState.dead":     "number of messages that the service gave up",
		"Delivery.status":        "`pending`: failed, and will be tried again. `dead`: given up",
		"DeliveryAttempt.status": "the HTTP status; null if the receiver did not answer",
		"Ping.status":            "the HTTP status; null if the receiver did not answer",
		"Ping.event_id":          "begins with `ping_` and belongs to no event",

		"NewAPIKey.expires_at": "in the future: the key is not valid from then on. Left out: when the key that " +
			"creates it expires; not later than that",
		"NewAPIKey.require_signature": "requests with this key must be signed. Left out: as with the key that " +
			"creates it; false only if that key does not demand signatures",
		"NewAPIKey.scopes": "within the scopes of the key that creates it. A scope includes its own `:read` form",
		"ApiKey.status":    keyStatus, "IssuedAPIKey.status": keyStatus,
		"ApiKey.expires_at":       "when the key expires; null: never",
		"IssuedAPIKey.expires_at": "when the key expires; null: never",

		"Health.status":    "`live`",
		"Readiness.status": "`ready`",
		"Readiness.store_space": "which changes the store has room for: `free`, `reserve` while it is almost full, " +
			"or `full`",
	})
	return all
}

const (
	pinnedAccount = "the license must be of this account, else 40401. Required for external keys"
	pinnedMode    = "the license must be of this mode, else 40401. Left out: any; for external keys `live`"
	askedReceipt  = "true: answer with a [receipt](#receipts-of-activations), too. Left out: as the product says"
	licenseStatus = "the first that applies: `revoked`, `suspended`, `expired` (`expires_at` is past), `activated` " +
		"(a device is bound), `not_activated`"
	endpointStatus = "whether the service sends events to the endpoint"
	keyStatus      = "`expired`: `expires_at` is past"
	twoSecrets     = "until when messages are also signed with the previous secret, or null"
)
