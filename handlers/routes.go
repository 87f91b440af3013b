package handlers

import (
	"iter"
	"reflect"
	"strings"

	"github.com/valyala/fasthttp"

	"licet/handlers/docs"
	"licet/licensing"
)

// Auth says which credentials a route reads.
type Auth int

const (
	// NoAuth routes read no credentials: probes, and pages whose address is the secret.
	NoAuth Auth = iota
	// OptionalAuth routes serve end users, who need no credentials, and scripts of any web page.
	// Credentials that are sent must be valid.
	OptionalAuth
	// RequiredAuth routes need an API key with the scopes of the route.
	RequiredAuth
)

// route is one row of the table of routes.
type route struct {
	method   string
	pattern  string // variable segments in braces; the name of the route in logs and metrics
	access   Auth
	scope    string // the required scopes, with blanks between; only with RequiredAuth
	endpoint *endpoint
	body     bodyForm
	limit    int                // of the body in bytes; 0: bodyLimit. Only on patterns without variables
	page     bool               // answers pages for people, its errors too
	media    string             // of a response without the envelope; empty: JSON in the envelope, or a page
	headers  []string           // of requests: what the function reads, beside the headers that all routes share
	own      []licensing.Reason // why the function refuses requests; see reasons
	// command: the request becomes commands and nothing else, and there may be so
	// many that most must be refused cheaply; see routeRefusal. Only on POST patterns
	// without variables.
	command bool
	traits  trait
	// scrape, instead of endpoint, writes the whole answer itself.
	scrape fasthttp.RequestHandler
}

// trait is a property of a route; traits combine.
type trait int

const (
	// idempotent: the same request sent twice has the effect of one, so that sending
	// it again resolves an unknown outcome. All methods but POST are.
	idempotent trait = 1 << iota
	creates          // a success creates something: 201 instead of 200
	mayCreate        // a success may create something
	activates        // answers are counted by the outcome of the activation
	grows            // makes the store grow: refused while the store is almost full
	quiet            // called by machines every few seconds: logged at debug level
	cached           // answers have an ETag, and may be 304
)

func (r *route) is(t trait) bool { return r.traits&t != 0 }

// keyed makes a route for callers with an API key. do is the function of the route; In is its
// request type.
func keyed[In, Out any, R resourceRoutes](method, pattern, scope string, do function[R, In, Out],
	traits ...trait) route {
	r := newRoute(method, pattern, do, traits...)
	r.access, r.scope = RequiredAuth, scope
	return r
}

// command makes a route for end users; see route.command.
func command[In, Out any, R resourceRoutes](pattern string, do function[R, In, Out], traits ...trait) route {
	r := newRoute(fasthttp.MethodPost, pattern, do, append(traits, idempotent)...)
	r.access, r.limit, r.command = OptionalAuth, openBodyLimit, true
	return r
}

// page makes a route for people.
func page[In any, R resourceRoutes](method, pattern string, do function[R, In, document]) route {
	r := newRoute(method, pattern, do, idempotent)
	r.page = true
	return r
}

// file makes a route for a file, with its media type.
func file[R resourceRoutes](pattern, media string, do function[R, noInput, document]) route {
	r := newRoute(fasthttp.MethodGet, pattern, do)
	r.media = media
	return r
}

// openDocument makes a route for a document without the envelope. Every client may read the document, and caches may
// keep the document.
func openDocument[In any, R resourceRoutes](pattern, media string, do function[R, In, document]) route {
	r := newRoute(fasthttp.MethodGet, pattern, do, cached).refuses(licensing.ReasonRateLimited).
		reads(fasthttp.HeaderIfNoneMatch)
	r.access, r.media = OptionalAuth, media
	return r
}

// reads returns the route with the headers that its function reads.
func (r route) reads(headers ...string) route {
	r.headers = headers
	return r
}

// answers returns the route with the type of its document of JSON.
func (r route) answers(of reflect.Type) route {
	r.endpoint.answer = of
	return r
}

func newRoute[In, Out any, R resourceRoutes](method, pattern string, do function[R, In, Out], traits ...trait) route {
	r := route{method: method, pattern: pattern, endpoint: serve(do)}
	r.body = r.endpoint.request.body
	if method != fasthttp.MethodPost {
		r.traits = idempotent
	}
	for _, t := range traits {
		r.traits |= t
	}
	return r
}

// statuses lists the statuses of successes.
func (r *route) statuses() []int {
	switch {
	case r.is(creates):
		return []int{fasthttp.StatusCreated}
	case r.is(mayCreate):
		return []int{fasthttp.StatusOK, fasthttp.StatusCreated}
	case r.is(cached):
		return []int{fasthttp.StatusOK, fasthttp.StatusNotModified}
	case r.page && r.body == formBody:
		return []int{fasthttp.StatusSeeOther}
	default:
		return []int{fasthttp.StatusOK}
	}
}

// scopes lists the scopes that an API key needs, all of them.
func (r *route) scopes() iter.Seq[string] { return strings.FieldsSeq(r.scope) }

// apiRoutes is the table of what the public listener serves. Each row names the request type, the
// pattern, the scope and the function of a route.
func apiRoutes() []route {
	return append([]route{
		command[activationRequest]("/v1/licenses/activate", endUserRoutes.activate, activates).
			refuses(licensing.ReasonLicenseNotFound, licensing.ReasonLicenseRevoked, licensing.ReasonLicenseSuspended,
				licensing.ReasonLicenseExpired, licensing.ReasonProductMismatch, licensing.ReasonDeviceLimitReached,
				licensing.ReasonLicenseKeyReplaced,
				licensing.ReasonAccountBudgetReached),
		command[validationRequest]("/v1/licenses/validate", endUserRoutes.validateLicense).
			refuses(licensing.ReasonLicenseNotFound),
		command[deactivationRequest]("/v1/licenses/deactivate", endUserRoutes.deactivate).
			refuses(licensing.ReasonLicenseNotFound, licensing.ReasonSelfServiceForbidden,
				licensing.ReasonLicenseKeyReplaced),

		command[receiptFileRequest]("/v1/receipts", endUserRoutes.makeReceiptFile, activates).
			refuses(licensing.ReasonInvalidLicenseKey, licensing.ReasonLicenseNotFound, licensing.ReasonLicenseRevoked,
				licensing.ReasonLicenseSuspended, licensing.ReasonLicenseExpired, licensing.ReasonDeviceLimitReached,
				licensing.ReasonLicenseKeyReplaced, licensing.ReasonAccountBudgetReached),
		command[receiptBatch]("/v1/receipts/batch", endUserRoutes.makeReceiptFiles),
		command[releaseRequest]("/v1/receipts/release", endUserRoutes.releaseSeat).
			refuses(licensing.ReasonLicenseNotFound, licensing.ReasonSelfServiceForbidden,
				licensing.ReasonLicenseKeyReplaced),

		command[trialRequest]("/v1/trials", endUserRoutes.startTrial, mayCreate).
			refuses(licensing.ReasonTrialUsed, licensing.ReasonTrialNotOffered, licensing.ReasonProductNotFound,
				licensing.ReasonAccountBudgetReached),

		keyed[grant]("POST", "/v1/licenses", "licenses", licenseRoutes.grantLicenses, creates, grows).
			refuses(licensing.ReasonProductNotFound, licensing.ReasonExternalKeyInUse),
		keyed[licenseQuery]("GET", "/v1/licenses", "licenses:read", licenseRoutes.listLicenses),
		keyed[licensePath]("GET", "/v1/licenses/{license_key}", "licenses:read", licenseRoutes.getLicense),
		keyed[licenseUpdate]("PATCH", "/v1/licenses/{license_key}", "licenses", licenseRoutes.updateLicense).
			refuses(licensing.ReasonAccountBudgetReached),
		keyed[licenseChange]("POST", "/v1/licenses/{license_key}/suspend", "licenses", licenseRoutes.suspendLicense,
			idempotent).
			refuses(licensing.ReasonInvalidLicenseState, licensing.ReasonAccountBudgetReached),
		keyed[licenseChange]("POST", "/v1/licenses/{license_key}/reinstate", "licenses", licenseRoutes.reinstateLicense,
			idempotent).
			refuses(licensing.ReasonInvalidLicenseState),
		keyed[licenseChange]("POST", "/v1/licenses/{license_key}/revoke", "licenses", licenseRoutes.revokeLicense,
			idempotent).
			refuses(licensing.ReasonInvalidLicenseState, licensing.ReasonAccountBudgetReached),
		keyed[renewal]("POST", "/v1/licenses/{license_key}/renew", "licenses", licenseRoutes.renewLicense).
			refuses(licensing.ReasonInvalidLicenseState),
		keyed[reissue]("POST", "/v1/licenses/{license_key}/reissue", "licenses", licenseRoutes.reissueLicense).
			refuses(licensing.ReasonInvalidLicenseState, licensing.ReasonReissueLimit,
				licensing.ReasonAccountBudgetReached),
		keyed[deviceQuery]("GET", "/v1/licenses/{license_key}/devices", "licenses:read", licenseRoutes.listDevices),
		keyed[licenseHistory]("GET", "/v1/licenses/{license_key}/events", "licenses:read",
			eventRoutes.listLicenseEvents),
		keyed[devicePath]("DELETE", "/v1/licenses/{license_key}/devices/{device_id}", "licenses",
			licenseRoutes.removeDevice),

		keyed[productQuery]("GET", "/v1/products", "products:read", productRoutes.listProducts),
		keyed[productDescription]("PUT", "/v1/products/{product_id}", "products", productRoutes.putProduct, mayCreate,
			grows),
		keyed[existingProduct]("GET", "/v1/products/{product_id}", "products:read", productRoutes.getProduct).
			refuses(licensing.ReasonProductNotFound),
		keyed[existingProduct]("DELETE", "/v1/products/{product_id}", "products", productRoutes.deleteProduct).
			refuses(licensing.ReasonProductNotFound),
		keyed[newRollout]("POST", "/v1/products/{product_id}/rollout", "products", productRoutes.beginRollout,
			idempotent, grows).
			refuses(licensing.ReasonProductNotFound, licensing.ReasonRolloutInProgress),
		keyed[existingProduct]("GET", "/v1/products/{product_id}/rollout", "products:read", productRoutes.getRollout).
			refuses(licensing.ReasonProductNotFound, licensing.ReasonRolloutNotFound),
		keyed[existingProduct]("DELETE", "/v1/products/{product_id}/rollout", "products", productRoutes.cancelRollout).
			refuses(licensing.ReasonProductNotFound, licensing.ReasonRolloutNotFound),

		keyed[newOrder]("POST", "/v1/orders", "orders", orderRoutes.createOrder, creates, grows).
			refuses(licensing.ReasonProductNotFound, licensing.ReasonPaymentNotConfigured,
				licensing.ReasonLicenseNotFound),
		keyed[orderQuery]("GET", "/v1/orders", "orders:read", orderRoutes.listOrders),
		keyed[orderPath]("GET", "/v1/orders/{order_no}", "orders:read", orderRoutes.getOrder),
		keyed[orderHistory]("GET", "/v1/orders/{order_no}/events", "orders:read", eventRoutes.listOrderEvents),
		keyed[orderChange]("POST", "/v1/orders/{order_no}/cancel", "orders", orderRoutes.cancelOrder, idempotent).
			refuses(licensing.ReasonInvalidOrderState, licensing.ReasonAccountBudgetReached),
		keyed[paymentQuery]("GET", "/v1/orders/{order_no}/payments", "orders:read", orderRoutes.listPayments),
		keyed[outsidePayment]("POST", "/v1/orders/{order_no}/payments", "orders:payments", orderRoutes.recordPayment,
			idempotent).
			refuses(licensing.ReasonInvalidOrderState),
		keyed[refundRequest]("POST", "/v1/orders/{order_no}/refund", "orders:refunds", orderRoutes.refundOrder).
			refuses(licensing.ReasonInvalidOrderState, licensing.ReasonPaymentNotConfigured,
				licensing.ReasonProviderFailed, licensing.ReasonAccountBudgetReached),
		keyed[subscriptionEnd]("POST", "/v1/orders/{order_no}/subscription/cancel", "orders:subscriptions",
			orderRoutes.cancelSubscription, idempotent).
			refuses(licensing.ReasonInvalidOrderState, licensing.ReasonPaymentNotConfigured,
				licensing.ReasonProviderFailed),
		keyed[subscriptionResumption]("POST", "/v1/orders/{order_no}/subscription/resume", "orders:subscriptions",
			orderRoutes.resumeSubscription, idempotent).
			refuses(licensing.ReasonInvalidOrderState, licensing.ReasonPaymentNotConfigured,
				licensing.ReasonProviderFailed),
		keyed[planChange]("POST", "/v1/orders/{order_no}/subscription/change", "orders:subscriptions",
			orderRoutes.changePlan).
			refuses(licensing.ReasonProductNotFound, licensing.ReasonInvalidOrderState,
				licensing.ReasonPaymentNotConfigured, licensing.ReasonProviderFailed),
		keyed[orderPath]("POST", "/v1/orders/{order_no}/subscription/portal", "orders:subscriptions",
			orderRoutes.openPortal, idempotent).
			refuses(licensing.ReasonInvalidOrderState, licensing.ReasonPaymentNotConfigured,
				licensing.ReasonProviderFailed),
		keyed[orderPath]("PUT", "/v1/orders/{order_no}/sandbox_payment", "orders", orderRoutes.paySandbox).
			refuses(licensing.ReasonPaymentNotConfigured, licensing.ReasonProviderFailed),
		keyed[sandboxPlay]("PUT", "/v1/orders/{order_no}/sandbox", "orders", orderRoutes.playInSandbox).
			refuses(licensing.ReasonInvalidOrderState, licensing.ReasonPaymentNotConfigured,
				licensing.ReasonProviderFailed),
		keyed[salesQuery]("GET", "/v1/reports/sales", "orders:read", reportRoutes.reportSales),
		keyed[buyerRedaction]("POST", "/v1/redactions", "orders licenses", orderRoutes.redactBuyer, idempotent),

		keyed[feedQuery]("GET", "/v1/events", "events:read", eventRoutes.listEvents).
			refuses(licensing.ReasonCursorExpired),
		keyed[eventPath]("GET", "/v1/events/{event_id}", "events:read", eventRoutes.getEvent),

		keyed[newWebhook]("POST", "/v1/webhook_endpoints", "webhooks", webhookRoutes.createWebhook, creates, grows).
			refuses(licensing.ReasonWebhookLimit),
		keyed[webhookQuery]("GET", "/v1/webhook_endpoints", "webhooks:read", webhookRoutes.listWebhooks),
		keyed[webhookPath]("GET", "/v1/webhook_endpoints/{endpoint_id}", "webhooks:read", webhookRoutes.getWebhook),
		keyed[webhookUpdate]("PATCH", "/v1/webhook_endpoints/{endpoint_id}", "webhooks", webhookRoutes.updateWebhook).
			refuses(licensing.ReasonAccountBudgetReached),
		keyed[webhookPath]("DELETE", "/v1/webhook_endpoints/{endpoint_id}", "webhooks", webhookRoutes.deleteWebhook),
		keyed[webhookRotation]("POST", "/v1/webhook_endpoints/{endpoint_id}/rotate", "webhooks",
			webhookRoutes.rotateWebhook),
		keyed[webhookTest]("POST", "/v1/webhook_endpoints/{endpoint_id}/test", "webhooks", webhookRoutes.testWebhook,
			idempotent),
		keyed[deliveryQuery]("GET", "/v1/webhook_endpoints/{endpoint_id}/deliveries", "webhooks:read",
			webhookRoutes.listDeliveries),
		keyed[replayRequest]("POST", "/v1/webhook_endpoints/{endpoint_id}/replay", "webhooks",
			webhookRoutes.replayWebhook, grows).
			refuses(licensing.ReasonEventNotFound, licensing.ReasonReplayLimit),

		keyed[noInput]("GET", "/v1/account", "account:read", accountRoutes.getAccount),
		keyed[accountUpdate]("PATCH", "/v1/account", "account", accountRoutes.updateAccount, grows).
			refuses(licensing.ReasonSettingFixed),

		keyed[noInput]("PUT", "/v1/receipt_keys", "account", receiptKeyRoutes.makeReceiptKeys),
		keyed[noInput]("PUT", "/v1/receipt_keys/next", "account", receiptKeyRoutes.rotateReceiptKeys).
			refuses(licensing.ReasonAPIKeyLimit),
		openDocument[jwksPath]("/v1/accounts/{account_id}/{mode}/jwks.json", mediaTypeJSON, receiptKeyRoutes.keySet).
			answers(reflect.TypeFor[jwks]()),
		openDocument[revocationQuery]("/v1/accounts/{account_id}/{mode}/revocations", mediaTypeJWS,
			receiptKeyRoutes.revocations),

		keyed[newAPIKey]("POST", "/v1/keys", "keys", keyRoutes.createAPIKey, creates, grows).
			refuses(licensing.ReasonAPIKeyLimit),
		keyed[apiKeyQuery]("GET", "/v1/keys", "keys:read", keyRoutes.listAPIKeys),
		keyed[apiKeyPath]("GET", "/v1/keys/{key_id}", "keys:read", keyRoutes.getAPIKey),
		keyed[apiKeyPath]("DELETE", "/v1/keys/{key_id}", "keys", keyRoutes.revokeAPIKey),
		keyed[apiKeyRotation]("POST", "/v1/keys/{key_id}/rotate", "keys", keyRoutes.rotateAPIKey),

		newRoute[stripeCallback]("POST", stripeCallbacks+"{account_id}/{mode}", callbackRoutes.stripe, idempotent).
			reads(stripeSignature).
			refuses(reasonInvalidSignature, reasonNotFound, licensing.ReasonRateLimited,
				licensing.ReasonProviderFailed),

		page[payPagePath]("GET", "/pay/{order_no}/{token}", payRoutes.showOrder).
			refuses(licensing.ReasonOutcomeUnknown),
		page[payForm]("POST", "/pay/{order_no}/{token}", payRoutes.payOrCancel).
			refuses(licensing.ReasonForbidden, licensing.ReasonInvalidOrderState, licensing.ReasonPaymentNotConfigured,
				licensing.ReasonProviderFailed),

		file("/openapi.yaml", mediaTypeYAML, docsRoutes.inYAML),
		file("/openapi.json", mediaTypeJSON, docsRoutes.inJSON),
		file(docs.IconPath, mediaTypeIcon, docsRoutes.icon),
		file(docs.RobotsPath, mediaTypePlain, docsRoutes.robots),
	}, probes()...)
}

// referenceRoutes is what the public listener serves with Config.Docs.
func referenceRoutes() []route {
	return []route{
		file(docs.ReferencePath, mediaTypeHTML, docsRoutes.reference),
		file(docs.ErrorsPath, mediaTypeHTML, docsRoutes.errorCodes),
		file(docs.ViewerPath, mediaTypeScript, docsRoutes.viewer),
	}
}

// homeRoutes is what the public listener serves with Config.Home.
func homeRoutes() []route { return []route{file(docs.HomePath, mediaTypeHTML, docsRoutes.home)} }

// probes is what both listeners serve for an orchestrator.
func probes() []route {
	return []route{
		newRoute[noInput]("GET", "/livez", probeRoutes.live, quiet),
		newRoute[noInput]("GET", "/readyz", probeRoutes.ready, quiet).refuses(licensing.ReasonUnavailable),
	}
}
