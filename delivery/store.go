package delivery

import (
	"context"
	"iter"

	"licet/node/store"
)

// Store is what the delivery of webhooks asks of a database. A worker that delivers to an endpoint
// holds a claim on the endpoint, under a lease. The lease only says when other workers may try: each
// write of a holder compares the claim, so a holder that has lost its claim changes nothing. Every
// implementation passes storetest.RunDeliveries.
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

	// Work calls do as a worker that other workers know, under a lease. The context of do ends when
	// ctx ends, or when the lease may be lost; all claims are lost with the lease. Work returns when
	// do does, with do's error.
	Work(ctx context.Context, do func(ctx context.Context, w store.DeliveryWorker) error) error
}
