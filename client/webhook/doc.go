// Package webhook receives the webhooks of a Licet service: it proves that a
// request was sent by the service and by nobody else, and gives the event in it.
//
// A service sends each event as a POST, signed as Standard Webhooks 1.0 says,
// with the secret that it has shown when the endpoint was created. [New] takes
// that secret, and [Receiver.Handler] makes an http.Handler of a function:
//
//	receiver, err := webhook.New(os.Getenv("LICET_WEBHOOK_SECRET"))
//	if err != nil {
//		return err
//	}
//	http.Handle("/licet", receiver.Handler(func(ctx context.Context, event *webhook.Event) error {
//		return shop.Take(ctx, event)
//	}))
//
// Whoever has a server of another kind calls [Receiver.Receive] with the header
// and the bytes of the body, as they came: a body that was decoded and written
// anew has another signature.
//
// # More than once, and out of order
//
// An event comes at least once, so at times twice: where the answer to the first
// one was lost, and after a replay. Keep the ids of events that were worked on,
// [Event.ID], which is also the header webhook-id, where the work itself is kept
// and best in the same transaction, and answer at once to one that is there. This
// package remembers nothing: it does not know where.
//
// A failed delivery is tried again after others, so events may also come in
// another order than they happened. [Event.Sequence] counts those of one order or
// license without a gap; what is in an event is how things were right after it.
//
// # In time
//
// The service waits 15 seconds for the whole answer. Store what takes longer, and
// do it after the answer.
//
// # New secrets
//
// While a secret is replaced, the service signs with both, and a receiver may
// have both: give New the old one and the new one, and take the old one away when
// its time is over.
package webhook
