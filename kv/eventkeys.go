package kv

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"licet/licensing"
)

// eventsKey is the key that has events of a record up to a sequence number: its own, or,
// by the site alone, a block's.
func eventsKey(owner licensing.Owner, at site, record string, last uint64) string {
	b := append(make([]byte, 0, 96), eventsOfOwner(owner)...)
	b = appendEpoch(b, at.epoch)
	if at.block != 0 {
		return string(binary.BigEndian.AppendUint32(append(b, eventsOfBlock), uint32(at.block)))
	}
	b = append(b, record...)
	return string(appendSequence(b, last))
}

func blockKey(owner licensing.Owner, at site) string { return eventsKey(owner, at, "", 0) }

func eventsOfOwner(owner licensing.Owner) string { return eventsPrefix + ownerPath(owner) }

func appendSequence(b []byte, n uint64) []byte {
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], n)
	return append(b, eight[8-sequenceSize:]...)
}

func licenseInEvents(id licensing.LicenseID) string { return string(eventOfLicense) + string(id[:]) }

func orderInEvents(orderNo string) string { return string(eventOfOrder) + orderNo[len(orderPrefix):] }

// webhooksInEvents is an owner's endpoints as the record of events. An event's id is
// made of it, and must be of one owner.
func webhooksInEvents(owner licensing.Owner) string {
	sum := sha256.Sum256([]byte(ownerPath(owner)))
	return string(eventOfWebhooks) + string(sum[:idLength])
}

// dirEntry is one key of events: those of a record, or a block.
type dirEntry struct {
	site
	revision int64
	record   string     // empty where it is a block
	last     uint64     // sequence; likewise
	hash     recordHash // of the record; likewise
}

func (d *dirEntry) key(owner licensing.Owner) string {
	return eventsKey(owner, d.site, d.record, d.last)
}

// inFeedOrder is the one order of all events: that of their revisions, and of those
// with the same one first of orders, then of licenses, and then of all else. So an
// order is paid before its license is issued. Where an owner has blocks of a revision,
// they hold all of it that is the owner's, and sort by their numbers.
func inFeedOrder(a, b dirEntry) int {
	return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.revision, b.revision),
		cmp.Compare(a.block, b.block), compareRecords(a.record, b.record))
}

// compareRecords is the order of records that one request tells of.
func compareRecords(a, b string) int {
	return cmp.Or(cmp.Compare(rankOfKind(a), rankOfKind(b)), cmp.Compare(a, b))
}

func rankOfKind(record string) byte {
	if record == "" {
		return 0 // a block
	}
	switch record[0] {
	case eventOfOrder:
		return '0'
	case eventOfLicense:
		return '1'
	default:
		return '2'
	}
}

// feedRank is the same order within a revision, for whoever has events and no entries.
func feedRank(record string) string { return string(rankOfKind(record)) + record }

// readEventsKey reads what follows the owner in a key of events.
func readEventsKey(rest []byte) (dirEntry, bool) {
	if len(rest) == epochSize+1+blockSize && rest[epochSize] == eventsOfBlock {
		at := site{epoch(binary.BigEndian.Uint64(rest)), block(binary.BigEndian.Uint32(rest[epochSize+1:]))}
		return dirEntry{site: at}, at.block.valid()
	}
	if len(rest) <= epochSize+1+sequenceSize {
		return dirEntry{}, false
	}
	var eight [8]byte
	copy(eight[8-sequenceSize:], rest[len(rest)-sequenceSize:])
	record := bytes.Clone(rest[epochSize : len(rest)-sequenceSize])
	return dirEntry{
		site: site{epoch: epoch(binary.BigEndian.Uint64(rest))}, record: string(record), last: binary.BigEndian.Uint64(eight[:]),
	}, true
}

// nameOfEvents names a key of events as licet verify does.
func nameOfEvents(owner licensing.Owner, e *dirEntry) string {
	if e.block != 0 {
		return fmt.Sprintf("e/%s%d/%08x", ownerPath(owner), e.epoch, uint32(e.block))
	}
	return "e/" + eventID(e.site, e.record, e.last)
}
