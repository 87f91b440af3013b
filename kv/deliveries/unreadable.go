package deliveries

import (
	"context"
	"encoding/binary"
	"fmt"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/node/store"
)

// readDelivery reads a message that is pending or was given up. Where the message can't be read, its key still tells
// the event, which is enough to send it: one such message must not stop all deliveries to the endpoint.
func (s *Store) readDelivery(endpoint, event string, status store.DeliveryStatus, value []byte) store.Delivery {
	d, err := layout.DecodeDelivery(event, status, value)
	if s.etcd.Unreadable(string(status)+endpoint+event, "v/"+endpoint+"/"+event, err) {
		return store.Delivery{EventID: event, Status: status}
	}
	return d
}

// readProgress reads the progress of an endpoint; nil if it can't be read. The next holder then makes another one.
func (s *Store) readProgress(endpoint string, value []byte) *layout.Progress {
	progress, err := layout.DecodeProgress(value)
	if s.etcd.Unreadable(keyspace.ProgressKey(endpoint), "v/"+endpoint+"/p", err) {
		return nil
	}
	return progress
}

// readPage reads a page of the log of an endpoint; nil if it can't be read.
func (s *Store) readPage(endpoint string, value []byte, id string) []store.Delivery {
	page, err := layout.DecodePage(value)
	number := binary.BigEndian.Uint64([]byte(id))
	if s.etcd.Unreadable(keyspace.PageKey(endpoint, number), fmt.Sprintf("v/%s/a%d", endpoint, number), err) {
		return nil
	}
	return page
}

// rebuild replaces a progress that can't be read, from the endpoint's other keys at a revision. The place in the feed
// is lost, so the deliveries begin as for a new endpoint: all events since its creation that still exist are delivered
// again. An endpoint may get an event twice, but must not miss an event.
func (h *holder) rebuild(ctx context.Context, revision int64) error {
	s := h.worker.store
	dead, pages := keyspace.DeliveriesPrefix(h.endpoint, keyspace.KeyOfDead), keyspace.DeliveriesPrefix(h.endpoint,
		keyspace.KeyOfPage)
	err := s.eachKey(ctx, "count_dead", dead, dead, revision, func(string, []byte) error {
		h.stored.Progress.Dead++
		return nil
	})
	if err != nil {
		return err
	}
	log := &h.stored.Log
	err = s.eachKey(ctx, "read_log", pages, pages, revision, func(id string, value []byte) error {
		if len(id) != 8 {
			return nil // not the key of a page; verify reports that
		}
		if number := binary.BigEndian.Uint64([]byte(id)); number != log.Next() {
			*log = layout.DeliveryLog{First: number}
		}
		log.Counts = append(log.Counts, max(len(s.readPage(h.endpoint, value, id)), 1))
		return nil
	})
	if err != nil {
		return err
	}
	s.etcd.Log.Warn().Str("endpoint_id", h.endpoint).
		Msg("the progress of an endpoint can't be read: delivering all events since its creation again")
	return nil
}
