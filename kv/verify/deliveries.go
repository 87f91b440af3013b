package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// endpointFound contains what was read so far of the endpoint whose keys are being read.
type endpointFound struct {
	endpoint string
	progress *layout.Progress     // nil where there is none, or it can't be read
	there    bool                 // the key exists, readable or not
	log      []layout.DeliveryLog // pages, each as a log of its own
	unread   bool                 // one of them can't be read
	pending  int
	dead     int
	replays  int
	owners   []licensing.Owner // the endpoint's owner, as its progress and its replays name it
}

// checkDeliveries checks the keys of deliveries, endpoint by endpoint.
func (v *webhookChecks) checkDeliveries(ctx context.Context) error {
	keys := v.stream("v/")
	defer keys.close()
	var found endpointFound
	for {
		e, more, err := keys.next(ctx)
		if err != nil {
			return err
		}
		endpoint, kind, id, ok := "", byte(0), "", false
		if more {
			if endpoint, kind, id, ok = keyspace.ReadDeliveryKey(e.rest); !ok || !licensing.ValidEndpointID(endpoint) {
				v.report("delivery", "v/"+Opaque(e.rest), "key",
					"this is not a key of deliveries")
				continue
			}
		}
		if endpoint != found.endpoint {
			v.endEndpoint(found)
			found = endpointFound{endpoint: endpoint}
		}
		if !more {
			return v.lookUp(ctx, 0)
		}
		v.checkDelivery(&found, kind, id, e.value)
		if err := v.lookUp(ctx, lookupBatch); err != nil {
			return err
		}
	}
}

// checkDelivery checks one key of an endpoint.
func (v *webhookChecks) checkDelivery(found *endpointFound, kind byte, id string, value []byte) {
	var err error
	shown := id
	switch kind {
	case keyspace.KeyOfPage:
		var page []store.Delivery
		number := binary.BigEndian.Uint64([]byte(id))
		shown = fmt.Sprint(number)
		page, err = layout.DecodePage(value)
		found.log = append(found.log, layout.DeliveryLog{First: number, Counts: []int{len(page)}})
		found.unread = found.unread || err != nil
	case keyspace.KeyOfDead:
		found.dead++
		_, err = layout.DecodeDelivery(id, store.DeliveryDead, value)
	case keyspace.KeyOfPending:
		found.pending++
		_, err = layout.DecodeDelivery(id, store.DeliveryPending, value)
	case keyspace.KeyOfReplay:
		found.replays++
		var owner licensing.Owner
		if owner, _, err = layout.DecodeReplay(id, value); err == nil && !slices.Contains(found.owners, owner) {
			found.owners = append(found.owners, owner)
		}
	case keyspace.KeyOfProgress:
		found.there = true
		var progress *layout.Progress
		if progress, err = layout.DecodeProgress(value); err == nil {
			found.progress = progress
			if !slices.Contains(found.owners, progress.Owner) {
				found.owners = append(found.owners, progress.Owner)
			}
		}
	}
	if err != nil {
		if strings.Trim(shown, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			shown = Opaque(shown)
		}
		v.report("delivery", "v/"+found.endpoint+"/"+string(kind)+shown, "value", "the value can't be read: %v", err)
	}
}

// endEndpoint compares the keys of an endpoint with each other, unless they are being
// swept.
func (v *webhookChecks) endEndpoint(found endpointFound) {
	if found.endpoint == "" {
		return
	}
	bad := func(rule, format string, args ...any) {
		v.report("delivery", "v/"+found.endpoint, rule, format, args...)
	}
	v.want(keyspace.DeletedWebhookKey(found.endpoint), func(kv *mvccpb.KeyValue) {
		if kv != nil {
			return
		}
		for _, owner := range found.owners {
			v.want(keyspace.WebhooksKey(owner), func(kv *mvccpb.KeyValue) {
				// A record that can't be read is reported by itself.
				if at, err := layout.EndpointAt(owner, kv.GetValue(), found.endpoint, 0); err == nil && !at.Found {
					bad("endpoint_missing", "%s has no such endpoint, and no sweep will remove its keys",
						keyspace.OwnerPath(owner))
				}
			})
		}
		found.compare(bad)
	})
}

func (found *endpointFound) compare(bad func(rule, format string, args ...any)) {
	if found.replays > store.MaxReplays {
		bad("replays", "%d replays wait, and %d may", found.replays, store.MaxReplays)
	}
	p := found.progress
	if p == nil {
		if !found.there && found.pending+found.dead+len(found.log) > 0 {
			bad("progress_missing", "there are deliveries, and nothing says how far they are")
		}
		return
	}
	if p.Progress.Pending != found.pending {
		bad("pending_count", "it counts %d pending messages, and there are %d", p.Progress.Pending, found.pending)
	}
	if p.Progress.Dead != found.dead {
		bad("dead_count", "it counts %d messages that were given up, and there are %d", p.Progress.Dead, found.dead)
	}
	same := len(p.Log.Counts) == len(found.log)
	for i := 0; same && i < len(found.log); i++ {
		same = found.log[i].First == p.Log.First+uint64(i) && found.log[i].Counts[0] == p.Log.Counts[i]
	}
	if !same && !found.unread || len(p.Log.Counts) > layout.MaxPages {
		bad("log", "its log has other pages than its progress says")
	}
}

// checkDeliveryLease checks the key of a worker, or a lease on an endpoint. Both end with etcd leases, so the worker
// and the endpoint that they name need not exist any more.
func (v *webhookChecks) checkDeliveryLease(e entry) {
	if by, is := strings.CutPrefix(e.rest, keyspace.WorkerInfix); is {
		if len(by) != len(store.Incarnation{}) || len(e.value) > 0 {
			v.report("delivery_lease", "cell/g/"+Opaque(e.rest), "key",
				"this is not the key of a worker, or it has a value")
		}
		return
	}
	switch {
	case !licensing.ValidEndpointID(e.rest):
		v.report("delivery_lease", "cell/g/"+Opaque(e.rest), "key",
			"this is not the key of an endpoint")
	case len(e.value) != len(store.Incarnation{}):
		v.report("delivery_lease", "cell/g/"+e.rest, "value", "it names no worker")
	}
}

// Endpoint checks all keys of the deliveries to one endpoint, which were read at one revision, and returns
// the endpoint's progress. Tests of deliveries use it.
func Endpoint(endpoint string, keys []*mvccpb.KeyValue, report func(Violation)) *layout.Progress {
	v := newVerification(nil, Config{Report: report}).webhooks
	found := endpointFound{endpoint: endpoint}
	for _, kv := range keys {
		rest, _ := keyspace.CutFamily(string(kv.Key), keyspace.DeliveryFamily)
		_, kind, id, ok := keyspace.ReadDeliveryKey(rest)
		if !ok {
			v.report("delivery", "v/"+endpoint, "key", "there is a key %q", kv.Key)
			continue
		}
		v.checkDelivery(&found, kind, id, kv.Value)
	}
	found.compare(func(rule, format string, args ...any) { v.report("delivery", "v/"+endpoint, rule, format, args...) })
	return found.progress
}
