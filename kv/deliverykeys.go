package kv

import (
	"encoding/binary"
	"strings"

	"licet/node/store"
)

// What the delivery of webhooks keeps stands under the endpoint that it is about.
// Who may write it holds the endpoint's claim, and everything that is written
// compares it: see [deliveryHold].
const (
	deliveryPrefix = layout + "v/"
	claimedPrefix  = layout + "g/"
	workersPrefix  = claimedPrefix + workerRoom
	workerRoom     = "-/" // no endpoint's id begins like that
)

// The kinds of keys of an endpoint.
const (
	keyOfPage     = 'a' // of the log
	keyOfDead     = 'f'
	keyOfReplay   = 'j'
	keyOfProgress = 'p'
	keyOfPending  = 'r'
)

func endpointPrefix(endpoint string) string          { return deliveryPrefix + endpoint + "/" }
func progressKey(endpoint string) string             { return deliveriesOf(endpoint, keyOfProgress) }
func pendingKey(endpoint, event string) string       { return deliveriesOf(endpoint, keyOfPending) + event }
func deadKey(endpoint, event string) string          { return deliveriesOf(endpoint, keyOfDead) + event }
func replayKey(endpoint, replay string) string       { return deliveriesOf(endpoint, keyOfReplay) + replay }
func claimOfKey(endpoint string) string              { return claimedPrefix + endpoint }
func workerKey(by store.Incarnation) string          { return workersPrefix + string(by[:]) }
func deliveriesOf(endpoint string, kind byte) string { return endpointPrefix(endpoint) + string(kind) }

func pageKey(endpoint string, number uint64) string {
	return deliveriesOf(endpoint, keyOfPage) + string(binary.BigEndian.AppendUint64(nil, number))
}

// readDeliveryKey takes apart what follows deliveryPrefix: the endpoint, the kind of
// key, and what tells it from others of its kind.
func readDeliveryKey(rest string) (endpoint string, kind byte, id string, ok bool) {
	endpoint, rest, ok = strings.Cut(rest, "/")
	if !ok || endpoint == "" || rest == "" {
		return "", 0, "", false
	}
	kind, id = rest[0], rest[1:]
	switch kind {
	case keyOfProgress:
		ok = id == ""
	case keyOfPage:
		ok = len(id) == 8
	case keyOfDead, keyOfPending, keyOfReplay:
		ok = id != ""
	default:
		ok = false
	}
	return endpoint, kind, id, ok
}
