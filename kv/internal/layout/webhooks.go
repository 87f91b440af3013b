package layout

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/node/store"
)

// WebhooksWriter is the number of the repeated field with the writers of an owner's endpoints.
const WebhooksWriter protowire.Number = 15

// Webhooks is the value of an owner's endpoints. The owner's account and mode are in the key.
type Webhooks struct {
	Webhooks  licensing.Webhooks
	Writers   []Writer
	LastEvent keyspace.Location // of the endpoints' latest event
	// Fields of a newer format, to be kept: of the value, and of each endpoint by its id.
	Unknown   []byte
	UnknownOf map[string][]byte
}

func (s *Webhooks) table() fieldTable {
	return fieldTable{
		lastEventField(16, &s.LastEvent, &s.Webhooks.Sequence),
		{1, endpointsVar{s}},
		writersField(WebhooksWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// endpointTable lists the fields of one endpoint. The types of events are texts: a type that only a newer node knows
// must not be lost, since an endpoint without types receives all of them.
func endpointTable(e *licensing.Endpoint, unknown *[]byte) fieldTable {
	return fieldTable{
		textField(1, &e.ID),
		textField(2, &e.URL),
		textField(3, &e.Description),
		textsField(4, &e.Types),
		numberField(5, &e.SecretVersion),
		textField(6, &e.MasterID),
		messageField(7, &e.Previous, previousTable),
		textField(8, &e.Since),
		timeField(9, &e.CreatedAt),
		timeField(10, &e.ResetAt),
		timeField(11, &e.DisabledAt),
		textField(12, &e.DisabledBecause),
		unknownFields(unknown),
	}
}

func encodeEndpoint(e *licensing.Endpoint, unknown []byte) []byte {
	return endpointTable(e, &unknown).appendTo(nil)
}

func decodeEndpoint(message []byte) (e licensing.Endpoint, unknown []byte, err error) {
	err = decodeMessage(message, endpointTable(&e, &unknown).read)
	return e, unknown, err
}

// endpointsVar is a repeated field with the endpoints, each with its unknown fields.
type endpointsVar struct{ of *Webhooks }

func (v endpointsVar) write(b []byte, num protowire.Number) []byte {
	s := v.of
	for i := range s.Webhooks.Endpoints {
		e := &s.Webhooks.Endpoints[i]
		b = appendBytes(b, num, encodeEndpoint(e, s.UnknownOf[e.ID]))
	}
	return b
}

func (v endpointsVar) read(f Field) error {
	s := v.of
	e, unknown, err := decodeEndpoint(f.Bytes)
	if err != nil {
		return err
	}
	s.Webhooks.Endpoints = append(s.Webhooks.Endpoints, e)
	if unknown != nil {
		if s.UnknownOf == nil {
			s.UnknownOf = make(map[string][]byte)
		}
		s.UnknownOf[e.ID] = unknown
	}
	return nil
}

// Encode returns the value of an owner's endpoints.
func (s *Webhooks) Encode() []byte { return s.table().value() }

// DecodeWebhooks decodes the value of an owner's endpoints.
func DecodeWebhooks(owner licensing.Owner, value []byte) (*Webhooks, error) {
	s := &Webhooks{Webhooks: licensing.Webhooks{Owner: owner}}
	return s, DecodeValue(value, s.table().read)
}

// EndpointAt returns an endpoint from its owner's record, which was read at this revision of the store. record is nil
// if the owner has none.
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
