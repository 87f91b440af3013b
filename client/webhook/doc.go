// Package webhook receives the webhooks of a Licet service: it verifies that the service has sent a request, and
// returns the event. Package delivery/webhook, a part of the service, sends them; package client calls routes.
//
// A service sends each event as a POST, signed by Standard Webhooks 1.0 with the secret that the service showed when
// the endpoint was created. [New] takes that secret. [Receiver.Handler] turns a function into an http.Handler:
//
//	receiver, err := webhook.New(os.Getenv("LICET_WEBHOOK_SECRET"))
//	if err != nil {
//		return err
//	}
//	http.Handle("/licet", receiver.Handler(func(ctx context.Context, event *webhook.Event) error {
//		return shop.Take(ctx, event)
//	}))
//
// With a server that is not net/http, call [Receiver.Receive] with the header and the unchanged bytes of the body: a
// body that was decoded and encoded again has another signature.
//
// # Duplicates and order
//
// The service delivers each event at least once. An event comes again if your response was lost, and after a replay.
// Store the ids of processed events, [Event.ID], which is also the header webhook-id, together with the results, best
// in the same transaction. Acknowledge duplicates with 2xx. This package stores nothing.
//
// The service retries a failed delivery after later events, so events may arrive out of order. [Event.Sequence]
// numbers the events of an order or a license without a gap. The data of an event is the state right after it.
//
// # Time limit
//
// The service waits 15 seconds for the complete response. Queue longer work, and do it after the response.
//
// # Replacing a secret
//
// While you replace a secret, the service signs with both secrets. Pass the old and the new secret to New, and remove
// the old one after the overlap.
//
// # Files
//
//   - receiver.go: verifies the headers, the timestamp and the signatures of requests, and signs requests for tests
//   - handler.go: an http.Handler around a Receiver
//   - event.go: the event, the names of event types, and reading an event from its JSON
package webhook
