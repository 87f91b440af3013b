package kv

import (
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of the stored endpoints of an owner, whose account and mode are in
// the key.
const (
	webhooksEndpoint protowire.Number = 1  // repeated
	webhooksWriter   protowire.Number = 15 // repeated
	webhooksEvents   protowire.Number = 16 // the first field: see stampAt
)

// Field numbers of one endpoint.
const (
	endpointID            protowire.Number = 1
	endpointURL           protowire.Number = 2
	endpointDescription   protowire.Number = 3
	endpointType          protowire.Number = 4 // repeated; none: all kinds
	endpointSecretVersion protowire.Number = 5
	endpointMasterID      protowire.Number = 6
	endpointPrevious      protowire.Number = 7
	endpointSince         protowire.Number = 8
	endpointCreatedAt     protowire.Number = 9
	endpointResetAt       protowire.Number = 10
	endpointDisabledAt    protowire.Number = 11
	endpointDisabledFor   protowire.Number = 12
)

// storedWebhooks is an owner's endpoints as their key holds them.
type storedWebhooks struct {
	webhooks licensing.Webhooks
	writers  []writer
	told     site // of their latest event
	// Fields of a newer format, to be kept: of all, and of each endpoint by its id.
	unknown   []byte
	unknownOf map[string][]byte
}

func (s *storedWebhooks) encode() []byte {
	b := appendTold([]byte{formatVersion}, webhooksEvents, s.told, s.webhooks.Sequence)
	for i := range s.webhooks.Endpoints {
		e := &s.webhooks.Endpoints[i]
		b = appendBytes(b, webhooksEndpoint, append(encodeEndpoint(e), s.unknownOf[e.ID]...))
	}
	b = appendWriters(b, webhooksWriter, s.writers)
	return append(b, s.unknown...)
}

// encodeEndpoint writes an endpoint. The kinds of events are written as text: one that
// only a newer node knows must not be lost, since none means all.
func encodeEndpoint(e *licensing.Endpoint) []byte {
	b := appendString(nil, endpointID, e.ID)
	b = appendString(b, endpointURL, e.URL)
	b = appendString(b, endpointDescription, e.Description)
	for _, t := range e.Types {
		b = appendBytes(b, endpointType, []byte(t))
	}
	b = appendUint(b, endpointSecretVersion, uint64(e.SecretVersion))
	b = appendString(b, endpointMasterID, e.MasterID)
	if e.Previous != (licensing.PreviousSecret{}) {
		b = appendBytes(b, endpointPrevious, encodePrevious(e.Previous))
	}
	b = appendString(b, endpointSince, e.Since)
	b = appendTime(b, endpointCreatedAt, e.CreatedAt)
	b = appendTime(b, endpointResetAt, e.ResetAt)
	b = appendTime(b, endpointDisabledAt, e.DisabledAt)
	return appendString(b, endpointDisabledFor, string(e.DisabledBecause))
}

// decodeWebhooks reads the value under the key of an owner's endpoints.
func decodeWebhooks(owner licensing.Owner, value []byte) (*storedWebhooks, error) {
	s := &storedWebhooks{webhooks: licensing.Webhooks{Owner: owner}}
	w := &s.webhooks
	err := decodeValue(value, func(f field) (err error) {
		switch f.num {
		case webhooksEndpoint:
			e, unknown, err := decodeEndpoint(f.bytes)
			if err != nil {
				return err
			}
			w.Endpoints = append(w.Endpoints, e)
			if unknown != nil {
				if s.unknownOf == nil {
					s.unknownOf = make(map[string][]byte)
				}
				s.unknownOf[e.ID] = unknown
			}
		case webhooksWriter:
			s.writers, err = decodeWriter(s.writers, f.bytes)
		case webhooksEvents:
			s.told, w.Sequence, err = f.told()
		default:
			s.unknown = append(s.unknown, f.raw...)
		}
		return err
	})
	return s, err
}

func decodeEndpoint(message []byte) (e licensing.Endpoint, unknown []byte, err error) {
	err = decodeMessage(message, func(f field) (err error) {
		switch f.num {
		case endpointID:
			e.ID = f.string()
		case endpointURL:
			e.URL = f.string()
		case endpointDescription:
			e.Description = f.string()
		case endpointType:
			e.Types = append(e.Types, licensing.EventType(f.string()))
		case endpointSecretVersion:
			e.SecretVersion = f.int()
		case endpointMasterID:
			e.MasterID = f.string()
		case endpointPrevious:
			e.Previous, err = decodePrevious(f.bytes)
		case endpointSince:
			e.Since = f.string()
		case endpointCreatedAt:
			e.CreatedAt = f.time()
		case endpointResetAt:
			e.ResetAt = f.time()
		case endpointDisabledAt:
			e.DisabledAt = f.time()
		case endpointDisabledFor:
			e.DisabledBecause = licensing.DisableReason(f.string())
		default:
			unknown = append(unknown, f.raw...)
		}
		return err
	})
	return e, unknown, err
}
