package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
)

func (s webhookGroup) webhooksDeliveries() *cobra.Command {
	var status string
	return s.command(spec{
		use: "deliveries ENDPOINT_ID", short: "List deliveries to an endpoint",
		long: `List deliveries to an endpoint: first the pending deliveries, then the dead, then the latest that
succeeded. The service has stopped trying dead deliveries.`,
		example: `  licet webhooks deliveries ` + exampleEndpoint + `
  licet webhooks deliveries ` + exampleEndpoint + ` --status dead --all --output json`,
		route: "GET /v1/webhook_endpoints/{endpoint_id}/deliveries", scope: "webhooks:read",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&status, "status", "", "only deliveries in this `state`: pending, dead or delivered")
			Complete(cmd, "status", "pending", "dead", "delivered")
			listFlags(cmd, pageStandard, pageMost)
		},
		run: func(c *session, args []string) error {
			return c.list(listing{
				member: "deliveries",
				columns: []string{"event_id", "event_type", "status", "tries", "last_try", "result",
					"next_attempt_at"},
				create: "the service delivers new events; licet webhooks test ENDPOINT_ID sends a message now",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.Webhooks.ListDeliveries(c.ctx, args[0], status, page, as...))
				},
			}, pageMost)
		},
	})
}

func (s webhookGroup) webhooksReplay() *cobra.Command {
	var in client.WebhookReplay
	return s.command(spec{
		use: "replay ENDPOINT_ID", short: "Deliver events to an endpoint again",
		long: `Deliver events to an endpoint again: one event, a range of events, or all dead deliveries. The
service delivers them in the background; licet webhooks deliveries shows the progress.`,
		example: `  licet webhooks replay ` + exampleEndpoint + ` --event-id ` + exampleEvent + `
  licet webhooks replay ` + exampleEndpoint + ` --dead`,
		route: "POST /v1/webhook_endpoints/{endpoint_id}/replay", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&in.EventID, "event-id", "", "the `event` with this id")
			fs.StringVar(&in.Since, "since", "",
				"start of a range: events after this `event` id (default: from the oldest stored event)")
			fs.StringVar(&in.Until, "until", "", "end of a range: events up to and including this `event` id")
			fs.BoolVar(&in.Dead, "dead", false, "all dead deliveries")
			onceFlag(fs)
			cmd.MarkFlagsOneRequired("event-id", "until", "dead")
			cmd.MarkFlagsMutuallyExclusive("event-id", "until", "dead")
			cmd.MarkFlagsMutuallyExclusive("event-id", "since", "dead")
		},
		run: func(c *session, args []string) error {
			// An unset shell variable must not mean the oldest event.
			if since := changed(c, "since", in.Since); since != nil && *since == "" {
				return BadUsage("--since is empty: write the id of an event, or omit the flag for all stored events")
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return api.Webhooks.Replay(c.ctx, args[0], in, as...)
			})
		},
	})
}

// attempt is one attempt to deliver an event.
type attempt struct {
	At      json.RawMessage `json:"at"`
	Status  int             `json:"status"`
	Failure string          `json:"failure"`
}

// attempts returns the attempts of a delivery.
func (o object) attempts() (all []attempt) {
	_ = json.Unmarshal(o.get("attempts"), &all) // every delivery has them
	return all
}

// lastTry returns the time of the last attempt.
func (o object) lastTry() string {
	all := o.attempts()
	if len(all) == 0 {
		return "-"
	}
	return cell(all[len(all)-1].At)
}

// lastResult returns the result of the last attempt.
func (o object) lastResult() string {
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

// waiting returns the numbers of undelivered messages of an endpoint.
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
