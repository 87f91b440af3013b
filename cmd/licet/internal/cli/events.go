package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/internal/backoff"
	"licet/licensing"
)

// eventGroup builds the commands of licet events.
type eventGroup struct{ Setup }

const exampleEvent = "evt_VQ0000000000001HVZZZZZZZZZZZZZZZZ08"

func (s eventGroup) eventCommands() *cobra.Command {
	return group("events", "List and follow events", `  licet events tail
  licet events list --types order.paid,order.refunded
  licet events tail --after `+exampleEvent+` --output json`,
		s.eventsList(), s.eventsGet(), s.eventsTail())
}

// eventColumns are the columns of a table of events.
var eventColumns = []string{"id", "type", "timestamp", "about", "actor"}

// eventsCreate says what makes events.
const eventsCreate = "each change of an order or a license makes one; in test mode, try licet sandbox buy editor"

// eventFilterFlags adds the flags that select events.
func eventFilterFlags(cmd *cobra.Command, filter *client.EventFilter, without string) {
	fs := cmd.Flags()
	fs.StringVar(&filter.After, "after", "", "only events after this `event` id (default: "+without+")")
	fs.StringSliceVar(&filter.Types, "types", nil,
		"only events of these `types`, separated by commas, such as order.paid")
	Complete(cmd, "types", words(licensing.EventTypes())...)
}

func (s eventGroup) eventsList() *cobra.Command {
	var filter client.EventFilter
	return s.command(spec{
		use: "list", short: "List events, oldest first",
		example: `  licet events list --types order.paid --limit 50
  licet events list --all --output json > events.jsonl`,
		route: "GET /v1/events", scope: "events:read",
		flags: func(cmd *cobra.Command) {
			eventFilterFlags(cmd, &filter, "from the oldest stored event")
			listFlags(cmd, pageStandard, pageMost)
		},
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member: "events", columns: eventColumns, create: eventsCreate,
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					got, err := api.Events.List(c.ctx, filter, page, 0, as...)
					if err != nil || !got.HasMore {
						return "", err
					}
					return got.NextCursor, nil
				},
			}, pageMost)
		},
	})
}

func (s eventGroup) eventsGet() *cobra.Command {
	return s.command(spec{
		use: "get EVENT_ID", short: "Show an event",
		example: `  licet events get ` + exampleEvent + ` --output json`,
		route:   "GET /v1/events/{event_id}", scope: "events:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Events.Get(c.ctx, args[0], as...))
			})
		},
	})
}

func (s eventGroup) eventsTail() *cobra.Command {
	var filter client.EventFilter
	return s.command(spec{
		use: "tail", short: "Follow new events until Ctrl-C",
		long: `Follow new events until Ctrl-C and print one on each line; with --output json, one JSON object on
each line. With --after, the command continues after that event: it neither skips nor repeats
events.`,
		example: `  licet events tail
  licet events tail --types license.issued,license.revoked --output json`,
		scope: "events:read",
		flags: func(cmd *cobra.Command) { eventFilterFlags(cmd, &filter, "from now on") },
		run: func(c *session, _ []string) error {
			if filter.After == "" {
				filter.After = client.Now
			}
			return c.tail(filter)
		},
	})
}

const (
	// tailWait is how long one request waits for events. The client may wait less.
	tailWait = 10 * time.Second
	// tailPause is the minimum time between two empty pages: a stopping service ends all waiting requests at once.
	tailPause = time.Second
)

// tail prints new events until the session ends.
func (c *session) tail(filter client.EventFilter) error {
	out := c.newListWriter(listing{columns: eventColumns})
	defer out.end()
	page := client.Page{Limit: pageMost}
	last := ""
	for c.ctx.Err() == nil {
		asked := time.Now()
		items, err := c.tailPage(filter, &page)
		if c.ctx.Err() != nil && len(items) == 0 {
			break
		}
		if err == nil && len(items) > 0 {
			last = idOf(items[len(items)-1])
			err = out.items(items)
		}
		if err != nil {
			c.printPosition(last)
			return err
		}
		if len(items) == 0 {
			backoff.Sleep(c.ctx, tailPause-time.Since(asked))
		}
	}
	c.printPosition(last)
	return nil
}

// tailPage waits for events, and moves the cursor of page after them.
func (c *session) tailPage(filter client.EventFilter, page *client.Page) ([]json.RawMessage, error) {
	var next string
	data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
		got, err := api.Events.List(c.ctx, filter, *page, tailWait, as...)
		if err == nil {
			next = got.NextCursor
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	page.Cursor = next
	return listItems(data, "events")
}

// printPosition prints how to continue after the last event.
func (c *session) printPosition(last string) {
	if last != "" {
		fmt.Fprintf(c.stderr, "to continue after the last event, use --after %s\n", last)
	}
}

// idOf returns the id of an event.
func idOf(item json.RawMessage) string {
	var event struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(item, &event) // every event has an id
	return event.ID
}

// about returns the license key, order number or webhook id of an event.
func (o object) about() string {
	var data struct {
		Order   *client.Order   `json:"order"`
		License *client.License `json:"license"`
		Device  *client.Device  `json:"device"`
		Webhook *client.Webhook `json:"webhook"`
	}
	if json.Unmarshal(o.get("data"), &data) != nil {
		return "-"
	}
	text := "-"
	switch {
	case data.License != nil:
		text = cmp.Or(data.License.ID, data.License.LicenseKey) // a service of an earlier version shows no id
	case data.Order != nil:
		text = data.Order.OrderNo
	case data.Webhook != nil:
		text = data.Webhook.ID
	}
	if data.Device != nil {
		text += " " + data.Device.DeviceID
	}
	return plain(text)
}

// historyOf returns the command that lists the events of a license or an order.
func (s Setup) historyOf(
	is spec, read func(*client.Client, context.Context, string, client.Page,
		...client.CallOption) (*client.List[client.Event], error),
) *cobra.Command {
	is.flags = func(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) }
	is.run = func(c *session, args []string) error {
		return c.list(listing{
			member: "events", columns: eventColumns, create: "the service keeps events for a limited time",
			read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
				return next(read(api, c.ctx, args[0], page, as...))
			},
		}, pageMost)
	}
	return s.command(is)
}

func (s licenseGroup) licensesEvents() *cobra.Command {
	return s.historyOf(spec{
		use: "events LICENSE_KEY", short: "List the events of a license, newest first",
		example: `  licet licenses events LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1`,
		route:   "GET /v1/licenses/{license_key}/events", scope: "licenses:read",
	}, func(
		api *client.Client, ctx context.Context, key string, page client.Page, as ...client.CallOption,
	) (*client.List[client.Event], error) {
		return api.Licenses.ListEvents(ctx, key, page, as...)
	})
}

func (s orderGroup) ordersEvents() *cobra.Command {
	return s.historyOf(spec{
		use: "events ORDER_NO", short: "List the events of an order, newest first",
		example: `  licet orders events ` + exampleOrder,
		route:   "GET /v1/orders/{order_no}/events", scope: "orders:read",
	}, func(
		api *client.Client, ctx context.Context, orderNo string, page client.Page, as ...client.CallOption,
	) (*client.List[client.Event], error) {
		return api.Orders.ListEvents(ctx, orderNo, page, as...)
	})
}
