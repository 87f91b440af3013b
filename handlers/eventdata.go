package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/node/service"
	"licet/node/store"
)

// event is an event as responses show it, and the body of a webhook.
type event struct {
	ID        string              `json:"id"`
	Type      licensing.EventType `json:"type"`
	Timestamp timestamp           `json:"timestamp"`
	Sequence  uint64              `json:"sequence"`
	Revision  int64               `json:"revision"`
	Actor     licensing.Actor     `json:"actor"`
	Data      json.RawMessage     `json:"data"`
}

// eventData is what the event changed: an order, or a license, perhaps with one device, or a
// webhook endpoint.
type eventData struct {
	Order   *order           `json:"order,omitempty"`
	License *eventLicense    `json:"license,omitempty"`
	Device  *device          `json:"device,omitempty"`
	Webhook *webhookEndpoint `json:"webhook,omitempty"`
	// Licensing records these as members of an event.
	Reason            string   `json:"reason,omitempty"`
	PreviousDeviceID  string   `json:"previous_device_id,omitempty"`
	ChangedComponents []string `json:"changed_components,omitempty"`
}

// eventLicense is a license without its devices.
type eventLicense struct {
	licenseTerms
	licenseState
}

// eventRenderer renders events for the feed and for webhooks.
type eventRenderer struct {
	*renderer
	metrics *metrics.Metrics
	log     zerolog.Logger
	guard   *guard.Guard
}

// answer renders an event. An event that can't be rendered becomes a placeholder: it must not
// break its page of the feed, nor an endpoint's deliveries.
func (e *eventRenderer) answer(v *service.EventView) event {
	answer := event{
		ID: v.ID, Type: v.Type, Timestamp: timestamp(v.At), Sequence: v.Sequence, Revision: v.Revision, Actor: v.Actor,
	}
	var err error
	if answer.Data, err = e.data(v); err != nil {
		if e.metrics.EventValuesUnreadable.CountOnce(v.ID) {
			e.log.Error().Err(err).Str("event_id", v.ID).Msg("can't render an event; readers get a placeholder")
		}
		answer.Type, answer.Actor, answer.Data = licensing.EventUnreadable, licensing.System, json.RawMessage("{}")
	}
	return answer
}

// data renders the data of an event. A panic becomes an error.
func (e *eventRenderer) data(v *service.EventView) (data json.RawMessage, err error) {
	err = errors.New("rendering panicked")
	e.guard.Do("event", func() { data, err = e.members(v) })
	return data, err
}

func (e *eventRenderer) members(v *service.EventView) (json.RawMessage, error) {
	var data eventData
	if v.Order != nil {
		o := e.orderAnswer(v.Order, v.At)
		data.Order = &o
	}
	if v.License != nil {
		view := store.LicenseView{License: *v.License, Metadata: v.Metadata, Entitled: v.Entitled}
		data.License = &eventLicense{e.termsAnswer(&view, v.At), stateAnswer(&view)}
		data.License.Trial = v.OfTrial()
	}
	if v.Device != nil {
		d := deviceAnswer(v.Device)
		data.Device = &d
	}
	if v.Webhook != nil {
		endpoint := webhookAnswer(v.Webhook, v.Owner, v.At)
		data.Webhook = &endpoint
	}
	return data.encode(v.Members)
}

// encode writes the data with further members, except members that the data has itself.
func (d *eventData) encode(further []licensing.EventMember) (json.RawMessage, error) {
	encoded, err := encode(d)
	if err != nil {
		return nil, err
	}
	encoded = bytes.TrimSuffix(encoded, []byte("\n"))
	for i := range further {
		m := &further[i]
		if encoded, err = withMember(encoded, m.Of, m.Name, m.JSON); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

// withMember adds a member to an object, or to the object named of inside it, which withMember creates
// if it is missing. An existing member stays as it is.
func withMember(object []byte, of, name, value string) ([]byte, error) {
	members := make(map[string]json.RawMessage)
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, fmt.Errorf("a member of an event's data: %w", err)
	}
	if of != "" {
		inner := members[of]
		if inner == nil {
			inner = json.RawMessage("{}")
		}
		var err error
		if members[of], err = withMember(inner, "", name, value); err != nil {
			return nil, err
		}
	} else if _, there := members[name]; !there {
		members[name] = json.RawMessage(value)
	}
	encoded, err := encode(members)
	return bytes.TrimSuffix(encoded, []byte("\n")), err
}

// RenderEvent writes an event as the body of a webhook, equal to the data that a lookup answers.
func (s *Server) RenderEvent(v *service.EventView) ([]byte, error) {
	return encodeEvent(s.events.answer(v))
}

// encodeEvent writes an event as the body of a webhook.
func encodeEvent(e event) ([]byte, error) {
	body, err := encode(e)
	if err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	return bytes.TrimSuffix(body, []byte("\n")), nil
}
