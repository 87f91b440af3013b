package kv

import (
	"licet/kv/internal/layout"
	"licet/licensing"
)

// A value that can't be read must not end what it is a part of. It is damaged, or a newer build wrote it. Readers of
// events get a placeholder in its place: see layout.DecodeEvents and layout.DecodeRuns. Each value is counted and logged once, however
// often it is read.

// noteUnreadable notes that a key of events, or a part of it, can't be read; err is nil where it can.
func (s *Store) noteUnreadable(owner licensing.Owner, e *layout.EventsKey, err error) {
	if err != nil {
		s.etcd.NoteUnreadable(e.Key(owner), layout.NameOfEvents(owner, e), err)
	}
}

// noteUnreadableRun notes that events of one record in a key can't be read.
func (s *Store) noteUnreadableRun(owner licensing.Owner, e *layout.EventsKey, run *layout.Run, err error) {
	if err != nil {
		at := layout.Location{Epoch: e.Epoch, Block: e.Block}
		s.etcd.NoteUnreadable(e.Key(owner)+run.Record, "e/"+layout.EventID(at, run.Record, run.Last), err)
	}
}
