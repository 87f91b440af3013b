package kv

import (
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// A value that can't be read must not end what it is a part of. It is damaged, or a newer build wrote it. Readers of
// events get a placeholder in its place: see layout.DecodeEvents and layout.DecodeRuns. Each value is counted and logged once, however
// often it is read.

// noteUnreadable notes that a key of events, or a part of it, can't be read; err is nil where it can.
func (s *Store) noteUnreadable(owner licensing.Owner, e *layout.EventsKey, err error) {
	if err != nil {
		s.noteValue(e.Key(owner), layout.NameOfEvents(owner, e), err)
	}
}

// noteUnreadableRun notes that events of one record in a key can't be read.
func (s *Store) noteUnreadableRun(owner licensing.Owner, e *layout.EventsKey, run *layout.Run, err error) {
	if err != nil {
		at := layout.Location{Epoch: e.Epoch, Block: e.Block}
		s.noteValue(e.Key(owner)+run.Record, "e/"+layout.EventID(at, run.Record, run.Last), err)
	}
}

// noteValue notes a value under a key, which may be secret, and by a name, which is not.
func (s *Store) noteValue(key, name string, err error) {
	if s.metrics.EventValuesUnreadable.CountOnce(key) {
		s.unreadableLog.Error().Err(err).Str("value", name).
			Msg("a stored value can't be read; what depends on it goes on without it, and licet store verify shows it")
	}
}

// readDelivery reads a message that is pending or was given up. Where the message can't be read, its key still tells
// the event, which is enough to send it: one such message must not stop all deliveries to the endpoint.
func (s *Store) readDelivery(endpoint, event string, status store.DeliveryStatus, value []byte) store.Delivery {
	d, err := layout.DecodeDelivery(event, status, value)
	if err != nil {
		s.noteValue(string(status)+endpoint+event, "v/"+endpoint+"/"+event, err)
		return store.Delivery{EventID: event, Status: status}
	}
	return d
}
