package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
)

func (s Setup) webhooksDeliveries() *cobra.Command {
	var status string
	return s.command(spec{
		use: "deliveries ENDPOINT_ID", short: "List what became of messages to an endpoint",
		long: `List what became of messages to an endpoint: those that are pending, then those that were
given up, and then the latest that were delivered.`,
		example: `  licet webhooks deliveries ` + exampleEndpoint + `
  licet webhooks deliveries ` + exampleEndpoint + ` --status dead --all --output json`,
		args: cobra.ExactArgs(1), route: "GET /v1/webhook_endpoints/{endpoint_id}/deliveries", scope: "webhooks:read",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&status, "status", "", "only those that are so: `pending`, dead or delivered")
			Complete(cmd, "status", "pending", "dead", "delivered")
			listFlags(cmd, pageStandard, pageMost)
		},
		run: func(c *session, args []string) error {
			return c.list(listing{
				member:  "deliveries",
				columns: []string{"event_id", "event_type", "status", "tries", "last_try", "came_of_it", "next_attempt_at"},
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.ListWebhookDeliveries(c.ctx, args[0], status, page, as...))
				},
			}, pageMost)
		},
	})
}

func (s Setup) webhooksReplay() *cobra.Command {
	var in client.WebhookReplay
	return s.command(spec{
		use: "replay ENDPOINT_ID", short: "Have events delivered to an endpoint again",
		long: `Have events delivered to an endpoint again: one, or a span, or all that were given up.
The service does that in the background; licet webhooks deliveries tells how far it is.`,
		example: `  licet webhooks replay ` + exampleEndpoint + ` --event-id evt_00000000000001HVZZZZZZZZZZZZZZZZ08
  licet webhooks replay ` + exampleEndpoint + ` --dead`,
		args: cobra.ExactArgs(1), route: "POST /v1/webhook_endpoints/{endpoint_id}/replay", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&in.EventID, "event-id", "", "the one `event` of this id")
			fs.StringVar(&in.Since, "since", "", "of a span: those after an `event`, by its id; left out: from the oldest that is kept")
			fs.StringVar(&in.Until, "until", "", "of a span: those up to an `event` with it, by its id")
			fs.BoolVar(&in.Dead, "dead", false, "all that were given up")
			onceFlag(fs)
			cmd.MarkFlagsOneRequired("event-id", "until", "dead")
			cmd.MarkFlagsMutuallyExclusive("event-id", "until", "dead")
			cmd.MarkFlagsMutuallyExclusive("event-id", "since", "dead")
		},
		run: func(c *session, args []string) error {
			// Such as that of a variable that is not set. It would stand for the oldest.
			if since := changed(c, "since", in.Since); since != nil && *since == "" {
				return BadUsage("--since is empty: give an event's id, or leave it out for all events that are kept")
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return api.ReplayWebhook(c.ctx, args[0], in, as...)
			})
		},
	})
}

// attempt is what is told of one attempt to deliver an event.
type attempt struct {
	At      json.RawMessage `json:"at"`
	Status  int             `json:"status"`
	Failure string          `json:"failure"`
}

// attempts are those of a delivery.
func (o object) attempts() (all []attempt) {
	_ = json.Unmarshal(o.get("attempts"), &all) // an answer of this kind has them
	return all
}

// lastTry says when a delivery was tried last.
func (o object) lastTry() string {
	all := o.attempts()
	if len(all) == 0 {
		return "-"
	}
	return cell(all[len(all)-1].At)
}

// cameOfIt says in a word what came of the last attempt.
func (o object) cameOfIt() string {
	all := o.attempts()
	if len(all) == 0 {
		return "-"
	}
	switch last := all[len(all)-1]; {
	case last.Status == 0:
		return plain(last.Failure)
	case last.Failure == "" || last.Failure == "status":
		return fmt.Sprint(last.Status)
	default:
		return fmt.Sprintf("%d %s", last.Status, plain(last.Failure))
	}
}

// waiting says how many messages of an endpoint were not delivered.
func (o object) waiting() string {
	var state client.WebhookState
	if json.Unmarshal(o.get("delivery"), &state) != nil {
		return "-"
	}
	text := fmt.Sprintf("%d pending, %d dead", state.Pending, state.Dead)
	if !state.FailingSince.IsZero() {
		text += ", failing"
	}
	return text
}
