package kv

import (
	"cmp"
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// What one request tells of several records of an owner is not one key for each of them,
// since a key is most of what an event costs etcd: it is put into blocks,
//
//	e/<account>/<mode>/<epoch>b<block>
//
// each with the values that the keys of its records would have. They are in the feed's
// order, in a block and from one to the next.

// Field numbers of a block.
const (
	blockRun  protowire.Number = 1 // repeated
	runRecord protowire.Number = 1
	runLast   protowire.Number = 2
	runEvents protowire.Number = 3
)

// eventRun is what one transaction tells of one record.
type eventRun struct {
	record string
	last   uint64 // sequence
	value  []byte // see decodeEvents
	number uint64 // in its block, from 1
	// bad says why a run of a block can't be read at all. One such run stands for all of its kind in a row, and for
	// the rest of the block where the rest is cut off: number is that of the last.
	bad error
}

// hash stands for the run in ids of events. A run that can't be read has an id by its number in the block.
func (r *eventRun) hash(in block) recordHash {
	if r.bad != nil {
		return hashBlock(in)
	}
	return hashRecord(in, r.record)
}

// encodeBlock encodes a block with these runs, in the order given.
func encodeBlock(runs []eventRun) []byte {
	size := 1
	for i := range runs {
		size += len(runs[i].record) + len(runs[i].value) + blockOverhead
	}
	b := append(make([]byte, 0, size), formatVersion)
	for i := range runs {
		t := &runs[i]
		run := protowire.SizeTag(runRecord) + protowire.SizeBytes(len(t.record)) +
			protowire.SizeTag(runLast) + protowire.SizeVarint(t.last) +
			protowire.SizeTag(runEvents) + protowire.SizeBytes(len(t.value))
		b = protowire.AppendVarint(protowire.AppendTag(b, blockRun, protowire.BytesType), uint64(run))
		b = appendString(b, runRecord, t.record)
		b = appendUint(b, runLast, t.last)
		b = appendBytes(b, runEvents, t.value)
	}
	return b
}

// blockOverhead is the most that a run takes besides its record and its events.
const blockOverhead = 32

// runsOf reads what a key of events has, record by record. An error says why some of the runs can't be read. The runs
// that are returned with an error are whole all the same: bad ones stand for those that can't be read.
func runsOf(e *dirEntry, value []byte) ([]eventRun, error) {
	if e.block == 0 {
		return []eventRun{{record: e.record, last: e.last, value: value}}, nil
	}
	var runs []eventRun
	var failed error
	var number uint64
	var before string // the record of the latest run that could be read
	bad := func(err error) {
		failed = cmp.Or(failed, err)
		if n := len(runs); n > 0 && runs[n-1].bad != nil {
			runs[n-1].number = number
			return
		}
		runs = append(runs, eventRun{number: number, bad: err})
	}
	err := decodeValue(value, func(f field) error {
		if f.num != blockRun {
			return nil
		}
		number++
		run, err := decodeRun(f.bytes)
		if err == nil && before != "" && compareRecords(before, run.record) >= 0 {
			err = errMalformed
		}
		if err != nil {
			bad(err)
			return nil
		}
		run.number, before = number, run.record
		runs = append(runs, run)
		return nil
	})
	if err == nil && number == 0 {
		err = errMalformed
	}
	if err != nil {
		number++
		bad(err)
	}
	return runs, failed
}

func decodeRun(b []byte) (run eventRun, err error) {
	err = decodeMessage(b, func(f field) error {
		switch f.num {
		case runRecord:
			run.record = f.string()
		case runLast:
			run.last = f.varint
		case runEvents:
			run.value = f.bytes
		}
		return nil
	})
	if err == nil && (len(run.record) < 2 || run.last == 0 || run.last>>(8*sequenceSize) != 0 || run.value == nil) {
		err = errMalformed
	}
	return run, err
}

// errNotInBlock is the error of events that are looked for in a block that does not have
// them.
var errNotInBlock = errors.New("not in this block")

// decodeEventsAt reads events of a record in the value of the key that has them. As decodeEvents does, it may return
// events with an error: a placeholder where the run that should have them can't be read. With errNotInBlock it returns
// none.
func decodeEventsAt(owner licensing.Owner, at site, record string, last uint64, value []byte) (*storedEvents, error) {
	runs, err := runsOf(&dirEntry{site: at, record: record, last: last}, value)
	for i := range runs {
		if runs[i].record == record && runs[i].last == last {
			return decodeEvents(owner, record, last, runs[i].value)
		}
	}
	if err != nil {
		return tornEvents(last), err
	}
	return nil, errNotInBlock
}

// tornEvents are the events of a run that can't be read.
func tornEvents(last uint64) *storedEvents {
	return &storedEvents{events: []licensing.Event{placeholderFor(last, time.Time{})}, torn: true, adrift: last > 1}
}

// blockRuns is of how many records a block has events at most. Whoever asks for the
// events of one reads all of them.
const blockRuns = 16
