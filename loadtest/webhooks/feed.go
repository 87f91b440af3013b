package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"licet/client"
)

// payLink matches the member of an order that contains the address of the order's pay page.
var payLink = regexp.MustCompile(`"pay_url":"[^"]*"`)

// withoutPayLink returns the body of an event with pay_url null. The service shows a pay_url only as long as the order
// is unpaid, so a later call or a page of the feed has null where an earlier call has the address. Nothing else may
// differ.
func withoutPayLink(body []byte) []byte {
	return payLink.ReplaceAllLiteral(body, []byte(`"pay_url":null`))
}

// event is an event of the feed.
type event struct {
	text []byte // as the feed has it, without its pay link
	id   string
	Change
}

// parseEvent reads what the audit needs of an event.
func parseEvent(text []byte) (event, error) {
	var e client.Event
	if err := json.Unmarshal(text, &e); err != nil {
		return event{}, fmt.Errorf("an event of the feed: %w: %.300s", err, text)
	}
	found := event{text: withoutPayLink(text), id: e.ID, Change: Change{Kind: e.Type}}
	switch {
	case e.Data.Order != nil:
		found.Subject = e.Data.Order.OrderNo
	case e.Data.License != nil:
		found.Subject = e.Data.License.LicenseKey
	}
	if e.Data.Device != nil && e.Type != "license.activated" { // the journal does not know which was the first
		found.Device = e.Data.Device.DeviceID
	}
	return found, nil
}

// follow reads the feed with the Go client while the feed grows and nodes are killed, until ctx ends.
func (e *Endpoints) follow(ctx context.Context) error {
	for event, err := range e.desk.Events.Follow(ctx, client.EventFilter{}) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow the feed: %w", err)
		}
		e.followed = append(e.followed, event.ID)
	}
	return nil
}

// feedPage is how many events are read at a time.
const feedPage = 100

// readFeed reads the whole feed.
func readFeed(ctx context.Context, c *client.Client) ([]event, error) {
	var all []event
	for page := (client.Page{Limit: feedPage}); ; {
		var response client.Response
		read, err := c.Events.List(ctx, client.EventFilter{}, page, 0, client.Record(&response))
		if err != nil {
			return nil, fmt.Errorf("read the feed: %w", err)
		}
		var raw struct {
			Events []json.RawMessage `json:"events"`
		}
		if err := json.Unmarshal(response.Data, &raw); err != nil {
			return nil, fmt.Errorf("read the feed: %w", err)
		}
		for _, text := range raw.Events {
			e, err := parseEvent(text)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		page.Cursor = read.NextCursor
		if !read.HasMore {
			return all, nil
		}
	}
}
