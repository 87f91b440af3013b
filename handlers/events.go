package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/node/service"
	"licet/node/store"
)

// eventRoutes are the functions of the routes of events.
type eventRoutes struct{ *Server }

// eventList is a page of events.
type eventList struct {
	Events []event `json:"events"`
	Next   *string `json:"next_cursor"`
}

// eventFeed is a page of the feed. It always has a cursor: more events will come.
type eventFeed struct {
	eventList
	More bool `json:"has_more"`
}

const (
	// maxEventWait is the most seconds that a request waits for events, less than
	// the usual timeouts of proxies.
	maxEventWait = 25
	// fromNow, instead of an event's id, means the end of the feed.
	fromNow = "now"
)

// feedQuery asks for a page of the feed.
type feedQuery struct {
	Limit  param `query:"limit"`
	Types  param `query:"types"`
	Wait   param `query:"wait"`
	After  param `query:"after"`
	Cursor param `query:"cursor"`

	page  store.FeedPage
	wait  time.Duration
	place feedPlace
}

func (q *feedQuery) check(c *checks) {
	q.page.Limit = c.limit(q.Limit, defaultListPage, store.MaxListPage)
	q.page.Types = c.eventTypes("types", q.Types)
	q.wait = c.eventWait("wait", q.Wait)
	q.place = c.feedPlace(q.After, q.Cursor)
	q.page.After = q.place.at
}

// listEvents reads the caller's feed.
func (s eventRoutes) listEvents(ctx context.Context, c *call, q feedQuery) (eventFeed, error) {
	page := q.page
	if q.place.now {
		var err error
		if page.After, err = s.cfg.Node.EventsNow(ctx, c.owner()); err != nil {
			return eventFeed{}, err
		}
	}
	if q.wait > 0 {
		// The usual deadline is for work. This request mostly waits.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), q.wait+s.cfg.RequestTimeout)
		defer cancel()
	}
	feed, err := s.cfg.Node.Feed(ctx, c.owner(), page, service.FeedWait{
		For: q.wait, Stop: s.life.Done(), Key: c.key, NotifyGone: c.notifyGone(),
	})
	if errors.Is(err, service.ErrKeyEnded) {
		return eventFeed{}, errBadAPIKey
	}
	if errors.Is(err, store.ErrBadPosition) {
		return eventFeed{}, invalidField(q.place.from, "must be "+q.place.kind+": there is no such place in the feed")
	}
	if err != nil {
		return eventFeed{}, err
	}
	return eventFeed{eventList{answers(feed.Events, s.events.answer), orNull(string(feed.Next))}, feed.More}, nil
}

// feedPlace is the place in the feed where a page begins.
type feedPlace struct {
	at         store.FeedPosition
	now        bool
	from, kind string // the parameter that named the place, and what it must be
}

// feedPlace checks after and cursor. Only the store knows whether there is such a place.
func (c *rules) feedPlace(after, cursor param) feedPlace {
	c.describe("after", Limits{MaxLength: maxListCursor})
	c.describe("cursor", Limits{MinLength: 1, MaxLength: maxListCursor})
	place := feedPlace{from: "cursor", kind: problemCursorOfFeed}
	switch {
	case after.given && cursor.given:
		c.add("cursor", "can't be combined with after")
	case after.given:
		place = feedPlace{at: store.FeedPosition(after.value), from: "after", kind: "an event's id, or " + fromNow}
		place.now = after.value == fromNow
		formed := place.now || strings.HasPrefix(after.value, eventIDPrefix)
		if !formed || len(after.value) > maxListCursor {
			c.add("after", "must be "+place.kind)
		}
	case cursor.given:
		place.at = store.FeedPosition(cursor.value)
		if cursor.value == "" || len(cursor.value) > maxListCursor {
			c.add("cursor", "must be "+place.kind)
		}
	}
	return place
}

const (
	eventIDPrefix       = "evt_"
	problemCursorOfFeed = "the next_cursor of an earlier page"
)

// eventTypes parses the wanted types of events; nil: all.
func (c *rules) eventTypes(field string, in param) []licensing.EventType {
	if c.describe(field, Limits{}) || !in.given {
		return nil
	}
	types := parseEventTypes(strings.Split(in.value, ","))
	if types == nil {
		c.add(field, "must be kinds of events, each once, with commas between: "+eventTypeNames())
	}
	return types
}

// parseEventTypes parses one or more different types of events; nil if the names are anything else.
func parseEventTypes(names []string) (types []licensing.EventType) {
	for _, name := range names {
		t := licensing.EventType(name)
		if !slices.Contains(licensing.EventTypes(), t) || slices.Contains(types, t) {
			return nil
		}
		types = append(types, t)
	}
	return types
}

func eventTypeNames() string { return strings.Join(words(licensing.EventTypes()), ", ") }

// eventWait parses how long to wait while a page is empty.
func (c *rules) eventWait(field string, in param) time.Duration {
	if c.describe(field, Limits{Bounded: true, Maximum: maxEventWait}) || !in.given {
		return 0
	}
	seconds, err := strconv.ParseUint(in.value, 10, 32)
	if err != nil || seconds > maxEventWait {
		c.add(field, fmt.Sprintf("must be a number of seconds from 0 to %d", maxEventWait))
	}
	return time.Duration(seconds) * time.Second
}

// eventPath names an event.
type eventPath struct {
	ID text `path:"event_id"`
}

// getEvent looks an event up.
func (s eventRoutes) getEvent(ctx context.Context, c *call, in eventPath) (event, error) {
	view, err := s.cfg.Node.Event(ctx, c.owner(), in.ID.value)
	if err != nil {
		return event{}, err
	}
	return s.events.answer(&view), nil
}

// licenseHistory asks for a page of a license's events.
type licenseHistory struct {
	licensePath
	pageQuery
}

func (q *licenseHistory) check(c *checks) {
	q.licensePath.check(c)
	q.list(c, "events of license", q.key.String())
	q.checkPage(c)
}

// listLicenseEvents pages through the events of a license.
func (s eventRoutes) listLicenseEvents(ctx context.Context, c *call, q licenseHistory) (eventList, error) {
	history, err := s.cfg.Node.LicenseEvents(ctx, c.owner(), q.key, q.historyPage())
	return s.historyAnswer(&q.pageQuery, history, err)
}

// orderHistory asks for a page of an order's events.
type orderHistory struct {
	orderPath
	pageQuery
}

func (q *orderHistory) check(c *checks) {
	q.list(c, "events of order", q.OrderNo.value)
	q.checkPage(c)
}

// listOrderEvents pages through the events of an order.
func (s eventRoutes) listOrderEvents(ctx context.Context, c *call, q orderHistory) (eventList, error) {
	history, err := s.cfg.Node.OrderEvents(ctx, c.owner(), q.OrderNo.value, q.historyPage())
	return s.historyAnswer(&q.pageQuery, history, err)
}

func (q *pageQuery) historyPage() store.HistoryPage {
	return store.HistoryPage{Before: store.HistoryPosition(q.page.Before), Limit: q.page.Limit}
}

func (s eventRoutes) historyAnswer(q *pageQuery, history service.EventHistory, err error) (eventList, error) {
	if errors.Is(err, store.ErrBadPosition) {
		return eventList{}, invalidField("cursor", problemCursor)
	}
	if err != nil {
		return eventList{}, err
	}
	return eventList{answers(history.Events, s.events.answer), q.formatCursor(store.Position(history.Next))}, nil
}

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
