package layout

import (
	"cmp"
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// The events of one request about several records of an owner have no key for each record, since a key is most of
// what an event costs etcd. They are put into blocks,
//
//	e/<account>/<mode>/<epoch>b<block>
//
// each with the values that the keys of its records would have. The values are in the feed's order, within a block
// and from one block to the next.

// Field numbers of a block.
const (
	blockRun  protowire.Number = 1 // repeated
	runRecord protowire.Number = 1
	runLast   protowire.Number = 2
	runEvents protowire.Number = 3
)

// Run contains the events of one record in one transaction.
type Run struct {
	Record string
	Last   uint64 // sequence
	Value  []byte // see DecodeEvents
	Number uint64 // in its block, from 1
	// Bad says why a run of a block can't be read at all. One run stands for a row of unreadable runs, and for the rest
	// of the block if the rest is cut off. Number is then the number of the last one.
	Bad error
}

// Hash returns the hash that identifies the run in ids of events. All unreadable runs of a block have one hash: see
// HashBlock.
func (r *Run) Hash(in keyspace.Block) keyspace.RecordHash {
	if r.Bad != nil {
		return keyspace.HashBlock(in)
	}
	return keyspace.HashRecord(in, r.Record)
}

// EncodeBlock encodes a block with these runs, in the order given.
func EncodeBlock(runs []Run) []byte {
	size := 1
	for i := range runs {
		size += len(runs[i].Record) + len(runs[i].Value) + blockOverhead
	}
	b := append(make([]byte, 0, size), formatVersion)
	for i := range runs {
		t := &runs[i]
		run := protowire.SizeTag(runRecord) + protowire.SizeBytes(len(t.Record)) +
			protowire.SizeTag(runLast) + protowire.SizeVarint(t.Last) +
			protowire.SizeTag(runEvents) + protowire.SizeBytes(len(t.Value))
		b = protowire.AppendVarint(protowire.AppendTag(b, blockRun, protowire.BytesType), uint64(run))
		b = appendString(b, runRecord, t.Record)
		b = appendUint(b, runLast, t.Last)
		b = appendBytes(b, runEvents, t.Value)
	}
	return b
}

// blockOverhead is the most that a run takes in addition to its record and its events.
const blockOverhead = 32

// DecodeRuns reads the events of a key, record by record. An error says why some of the runs can't be read. The runs
// that are returned with an error are still complete: placeholders replace the unreadable runs.
func DecodeRuns(e *keyspace.EventsKey, value []byte) ([]Run, error) {
	if e.Block == 0 {
		return []Run{{Record: e.Record, Last: e.Last, Value: value}}, nil
	}
	var runs []Run
	var failed error
	var number uint64
	var before string // the record of the latest run that could be read
	bad := func(err error) {
		failed = cmp.Or(failed, err)
		if n := len(runs); n > 0 && runs[n-1].Bad != nil {
			runs[n-1].Number = number
			return
		}
		runs = append(runs, Run{Number: number, Bad: err})
	}
	err := DecodeValue(value, func(f Field) error {
		if f.Num != blockRun {
			return nil
		}
		number++
		run, err := decodeRun(f.Bytes)
		if err == nil && before != "" && keyspace.CompareRecords(before, run.Record) >= 0 {
			err = ErrMalformed
		}
		if err != nil {
			bad(err)
			return nil
		}
		run.Number, before = number, run.Record
		runs = append(runs, run)
		return nil
	})
	if err == nil && number == 0 {
		err = ErrMalformed
	}
	if err != nil {
		number++
		bad(err)
	}
	return runs, failed
}

func decodeRun(b []byte) (run Run, err error) {
	err = decodeMessage(b, func(f Field) error {
		switch f.Num {
		case runRecord:
			run.Record = f.string()
		case runLast:
			run.Last = f.varint
		case runEvents:
			run.Value = f.Bytes
		}
		return nil
	})
	validLast := run.Last != 0 && run.Last>>(8*keyspace.SequenceSize) == 0
	if err == nil && (len(run.Record) < 2 || !validLast || run.Value == nil) {
		err = ErrMalformed
	}
	return run, err
}

// ErrNotInBlock is the error of a search for events in a block that does not have them.
var ErrNotInBlock = errors.New("not in this block")

// DecodeEventsAt reads the events of a record from the value of the key that has them. Like DecodeEvents, it may return
// events with an error: a placeholder if the run with the events can't be read. With ErrNotInBlock it returns no
// events.
func DecodeEventsAt(
	owner licensing.Owner, at keyspace.Location, record string, last uint64, value []byte,
) (*Events, error) {
	runs, err := DecodeRuns(&keyspace.EventsKey{Location: at, Record: record, Last: last}, value)
	for i := range runs {
		if runs[i].Record == record && runs[i].Last == last {
			return DecodeEvents(owner, record, last, runs[i].Value)
		}
	}
	if err != nil {
		return TornEvents(last), err
	}
	return nil, ErrNotInBlock
}

// TornEvents returns the events of a run that can't be read.
func TornEvents(last uint64) *Events {
	return &Events{Events: []licensing.Event{PlaceholderFor(last, time.Time{})}, Torn: true, Adrift: last > 1}
}

// BlockRuns is the maximum number of records with events in a block. A reader of one record's events reads the whole
// block.
const BlockRuns = 16
