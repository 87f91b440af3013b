package delivery

import (
	"context"
	"iter"

	"licet/node/store"
)

// Store is what the delivery of webhooks asks of a database. A worker that delivers to an endpoint
// holds the lease on the endpoint. The lease ends with its holder's connection to the store, so that
// other workers may try; each write of a holder also compares the lease, so a holder that has lost the
// lease changes nothing. Every implementation passes storetest.RunDeliveries.
type Store interface {
	// WebhooksMark returns the revision at which an endpoint was changed last, or a replay was asked
	// for.
	WebhooksMark(ctx context.Context) (int64, error)
	// WatchWebhooks calls wake when the watch begins and whenever the mark may have moved, until ctx
	// ends. A call is a hint, as of store.Keys.WatchAPIKeys.
	WatchWebhooks(ctx context.Context, wake func())
	// AllWebhooks reads the endpoints of all owners.
	AllWebhooks(ctx context.Context) iter.Seq2[store.OwnerWebhooks, error]
	// Progresses reads the progress of endpoints; an endpoint without progress is left out.
	Progresses(ctx context.Context, endpoints ...string) (map[string]store.DeliveryProgress, error)

	// Work registers a worker that other workers know, and calls do. The context of do ends when ctx
	// ends, or when the registration may be lost; all leases of the worker end with the registration.
	// Work returns when do does, with do's error.
	Work(ctx context.Context, do func(ctx context.Context, w store.DeliveryWorker) error) error
}
