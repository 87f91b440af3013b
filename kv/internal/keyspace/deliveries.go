package keyspace

import (
	"encoding/binary"
	"strings"

	"licet/node/store"
)

// All keys of deliveries stand below their endpoint. Only the holder of the lease on the endpoint may write them, and
// each of its transactions compares the lease: see package kv, under Deliveries.
const (
	DeliveryFamily       = "v/"
	DeliveryLeasesPrefix = CellPrefix + "g/"
	WorkersPrefix        = DeliveryLeasesPrefix + WorkerInfix
	WorkerInfix          = "-/" // no endpoint's id begins like that
)

// The kinds of keys of an endpoint.
const (
	KeyOfPage     = 'a' // of the log
	KeyOfDead     = 'f'
	KeyOfReplay   = 'j'
	KeyOfProgress = 'p'
	KeyOfPending  = 'r'
)

// EndpointPrefix begins all keys of the deliveries to an endpoint.
func EndpointPrefix(endpoint string) string { return inSlotOf(endpoint, DeliveryFamily+endpoint+"/") }

// ProgressKey returns the key of an endpoint's progress.
func ProgressKey(endpoint string) string { return DeliveriesPrefix(endpoint, KeyOfProgress) }

// PendingKey returns the key of a message that waits for another attempt.
func PendingKey(endpoint, event string) string {
	return DeliveriesPrefix(endpoint, KeyOfPending) + event
}

// DeadKey returns the key of a message that was given up.
func DeadKey(endpoint, event string) string { return DeliveriesPrefix(endpoint, KeyOfDead) + event }

// ReplayKey returns the key of a replay.
func ReplayKey(endpoint, replay string) string {
	return DeliveriesPrefix(endpoint, KeyOfReplay) + replay
}

// DeliveryLeaseKey returns the key that names the worker which delivers to an endpoint.
func DeliveryLeaseKey(endpoint string) string { return DeliveryLeasesPrefix + endpoint }

// WorkerKey returns the key of a worker's registration.
func WorkerKey(by store.Incarnation) string { return WorkersPrefix + string(by[:]) }

// DeliveriesPrefix begins the keys of one kind of an endpoint's deliveries.
func DeliveriesPrefix(endpoint string, kind byte) string {
	return EndpointPrefix(endpoint) + string(kind)
}

// PageKey returns the key of a page of an endpoint's delivery log.
func PageKey(endpoint string, number uint64) string {
	return DeliveriesPrefix(endpoint, KeyOfPage) + string(binary.BigEndian.AppendUint64(nil, number))
}

// ReadDeliveryKey parses the part of a key after DeliveryFamily: the endpoint, the kind of the key, and the id of the
// key among the keys of its kind.
func ReadDeliveryKey(rest string) (endpoint string, kind byte, id string, ok bool) {
	endpoint, rest, ok = strings.Cut(rest, "/")
	if !ok || endpoint == "" || rest == "" {
		return "", 0, "", false
	}
	kind, id = rest[0], rest[1:]
	switch kind {
	case KeyOfProgress:
		ok = id == ""
	case KeyOfPage:
		ok = len(id) == 8
	case KeyOfDead, KeyOfPending, KeyOfReplay:
		ok = id != ""
	default:
		ok = false
	}
	return endpoint, kind, id, ok
}
