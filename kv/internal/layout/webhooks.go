package layout

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

// Field numbers of the stored endpoints of an owner, whose account and mode are in
// the key.
const (
	webhooksEndpoint protowire.Number = 1  // repeated
	WebhooksWriter   protowire.Number = 15 // repeated
	webhooksEvents   protowire.Number = 16 // the first field: see locationAt
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

// Webhooks is an owner's endpoints as their key holds them.
type Webhooks struct {
	Webhooks  licensing.Webhooks
	Writers   []Writer
	LastEvent Location // of their latest event
	// Fields of a newer format, to be kept: of all, and of each endpoint by its id.
	Unknown   []byte
	UnknownOf map[string][]byte
}

// Encode returns the value of an owner's endpoints.
func (s *Webhooks) Encode() []byte {
	b := appendLastEvent([]byte{formatVersion}, webhooksEvents, s.LastEvent, s.Webhooks.Sequence)
	for i := range s.Webhooks.Endpoints {
		e := &s.Webhooks.Endpoints[i]
		b = appendBytes(b, webhooksEndpoint, append(encodeEndpoint(e), s.UnknownOf[e.ID]...))
	}
	b = appendWriters(b, WebhooksWriter, s.Writers)
	return append(b, s.Unknown...)
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

// DecodeWebhooks reads the value under the key of an owner's endpoints.
func DecodeWebhooks(owner licensing.Owner, value []byte) (*Webhooks, error) {
	s := &Webhooks{Webhooks: licensing.Webhooks{Owner: owner}}
	w := &s.Webhooks
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case webhooksEndpoint:
			e, unknown, err := decodeEndpoint(f.Bytes)
			if err != nil {
				return err
			}
			w.Endpoints = append(w.Endpoints, e)
			if unknown != nil {
				if s.UnknownOf == nil {
					s.UnknownOf = make(map[string][]byte)
				}
				s.UnknownOf[e.ID] = unknown
			}
		case WebhooksWriter:
			s.Writers, err = decodeWriter(s.Writers, f.Bytes)
		case webhooksEvents:
			s.LastEvent, w.Sequence, err = f.lastEvent()
		default:
			s.Unknown = append(s.Unknown, f.raw...)
		}
		return err
	})
	return s, err
}

func decodeEndpoint(message []byte) (e licensing.Endpoint, unknown []byte, err error) {
	err = decodeMessage(message, func(f Field) (err error) {
		switch f.Num {
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
			e.Previous, err = decodePrevious(f.Bytes)
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

// EndpointAt finds an endpoint in its owner's record, which was read at a revision of the store. record is nil
// where the owner has none.
func EndpointAt(owner licensing.Owner, record []byte, endpoint string, revision int64) (store.EndpointAt, error) {
	at := store.EndpointAt{Revision: revision}
	if record == nil {
		return at, nil
	}
	stored, err := DecodeWebhooks(owner, record)
	if err != nil {
		return at, Internal(fmt.Errorf("the webhooks of %s: %w", owner.AccountID, err))
	}
	if found := stored.Webhooks.Find(endpoint); found != nil {
		at.Endpoint, at.Found = *found, true
	}
	return at, nil
}
