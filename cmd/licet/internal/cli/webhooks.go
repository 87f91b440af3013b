package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/licensing"
)

func (s Setup) webhookCommands() *cobra.Command {
	return group("webhooks", "Have events sent to your own servers", `  licet webhooks create https://shop.example.com/licet --event-types order.paid,order.refunded
  licet webhooks test we_01jd4q8x2m7r3n5t9v1w4y6z8a
  licet webhooks deliveries we_01jd4q8x2m7r3n5t9v1w4y6z8a --status pending`,
		s.webhooksCreate(), s.webhooksList(), s.webhooksGet(), s.webhooksUpdate(), s.webhooksDelete(), s.webhooksRotate(),
		s.webhooksTest(), s.webhooksDeliveries(), s.webhooksReplay())
}

const exampleEndpoint = "we_01jd4q8x2m7r3n5t9v1w4y6z8a"

// typesFlag adds the flag that says which events an endpoint gets.
func typesFlag(cmd *cobra.Command, into *[]string, without string) {
	cmd.Flags().StringSliceVar(into, "event-types", nil, "`kinds` of events that it gets, with commas between, such as order.paid, or *; "+without)
	Complete(cmd, "event-types", append([]string{client.AllTypes}, words(licensing.EventTypes())...)...)
}

func (s Setup) webhooksCreate() *cobra.Command {
	var in client.NewWebhook
	return s.command(spec{
		use: "create ENDPOINT_URL", short: "Make an endpoint that events are sent to",
		long: `Make an endpoint that events are sent to, from what happens from now on. Its secret,
which its messages are signed with, is printed this once.`,
		example: `  licet webhooks create https://shop.example.com/licet
  licet webhooks create https://shop.example.com/licet --event-types order.paid --description "Mails to buyers"`,
		args: cobra.ExactArgs(1), route: "POST /v1/webhook_endpoints", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			typesFlag(cmd, &in.Types, "left out: all")
			cmd.Flags().StringVar(&in.Description, "description", "", "`text` for people")
			onceFlag(cmd.Flags())
		},
		run: func(c *session, args []string) error {
			in.URL = args[0]
			var made *client.Webhook
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
				made, err = api.CreateWebhook(c.ctx, in, as...)
				return err
			})
			if err != nil {
				return err
			}
			if err := c.printOnce(data); err != nil {
				return fmt.Errorf("the endpoint %s was made and its secret could not be shown, so rotate it: %w", made.ID, err)
			}
			fmt.Fprintf(c.stderr, "the secret is not shown again: give it to the receiver, and then try it with licet webhooks test %s\n", made.ID)
			return nil
		},
	})
}

func (s Setup) webhooksList() *cobra.Command {
	return s.command(spec{
		use: "list", short: "List endpoints, the newest first",
		example: `  licet webhooks list
  licet webhooks list --output json`,
		args: cobra.NoArgs, route: "GET /v1/webhook_endpoints", scope: "webhooks:read",
		flags: func(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) },
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member:  "webhook_endpoints",
				columns: []string{"id", "url", "status", "disabled_because", "event_types", "waiting", "description"},
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.ListWebhooks(c.ctx, page, as...))
				},
			}, pageMost)
		},
	})
}

func (s Setup) webhooksGet() *cobra.Command {
	return s.command(spec{
		use: "get ENDPOINT_ID", short: "Look an endpoint up, and how far its deliveries are",
		example: `  licet webhooks get ` + exampleEndpoint,
		args:    cobra.ExactArgs(1), route: "GET /v1/webhook_endpoints/{endpoint_id}", scope: "webhooks:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Webhook(c.ctx, args[0], as...))
			})
		},
	})
}

func (s Setup) webhooksUpdate() *cobra.Command {
	var url, description string
	var types []string
	var enabled bool
	return s.command(spec{
		use: "update ENDPOINT_ID", short: "Change an endpoint",
		long: `Change an endpoint. What is left out stays as it is. One that was disabled gets, once it
is enabled, what has happened meanwhile, as far as that is kept.`,
		example: `  licet webhooks update ` + exampleEndpoint + ` --enabled=false
  licet webhooks update ` + exampleEndpoint + ` --endpoint-url https://shop.example.com/events --event-types '*'`,
		args: cobra.ExactArgs(1), route: "PATCH /v1/webhook_endpoints/{endpoint_id}", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&url, "endpoint-url", "", "`URL` that events are sent to")
			typesFlag(cmd, &types, "* for all")
			fs.StringVar(&description, "description", "", "`text` for people")
			fs.BoolVar(&enabled, "enabled", true, "whether it gets events")
			cmd.MarkFlagsOneRequired("endpoint-url", "event-types", "description", "enabled")
		},
		run: func(c *session, args []string) error {
			in := client.WebhookUpdate{
				URL: changed(c, "endpoint-url", url), Description: changed(c, "description", description),
				Types: types, Enabled: changed(c, "enabled", enabled),
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.UpdateWebhook(c.ctx, args[0], in, as...))
			})
		},
	})
}

func (s Setup) webhooksDelete() *cobra.Command {
	return s.command(spec{
		use: "delete ENDPOINT_ID", short: "Remove an endpoint",
		long:    "Remove an endpoint, with all that is kept of its deliveries. On a terminal it asks before.",
		example: `  licet webhooks delete ` + exampleEndpoint,
		args:    cobra.ExactArgs(1), route: "DELETE /v1/webhook_endpoints/{endpoint_id}", scope: "webhooks",
		flags: yesFlag,
		run: func(c *session, args []string) error {
			if err := c.confirm("Remove the webhook endpoint %s at %s, with what was not delivered to it?", args[0], c.target.url); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return api.DeleteWebhook(c.ctx, args[0], as...)
			})
		},
	})
}

func (s Setup) webhooksRotate() *cobra.Command {
	var overlap time.Duration
	return s.command(spec{
		use: "rotate ENDPOINT_ID", short: "Give an endpoint a new secret",
		long: `Give an endpoint a new secret, which is printed this once. For the overlap its messages
are signed with the one before, too, so that the receiver has that time to change.`,
		example: `  licet webhooks rotate ` + exampleEndpoint + ` --overlap 48h`,
		args:    cobra.ExactArgs(1), route: "POST /v1/webhook_endpoints/{endpoint_id}/rotate", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how `long` messages are signed with the secret before, too, at most 720h")
			onceFlag(cmd.Flags())
		},
		run: func(c *session, args []string) error {
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
				return only(api.RotateWebhook(c.ctx, args[0], client.Rotation{Overlap: &overlap}, as...))
			})
			if err != nil {
				return err
			}
			if err := c.printOnce(data); err != nil {
				return fmt.Errorf("the new secret could not be shown, so rotate it again: %w", err)
			}
			what := "beside the one before, and take that away when its time is over"
			if overlap == 0 {
				what = "in place of the one before, which signs nothing any more"
			}
			fmt.Fprintln(c.stderr, "the secret is not shown again: give it to the receiver "+what)
			return nil
		},
	})
}

func (s Setup) webhooksTest() *cobra.Command {
	return s.command(spec{
		use: "test ENDPOINT_ID", short: "Send an endpoint a message, and tell what came of it",
		long: `Send an endpoint a message of the kind webhook.ping, once, and tell what came of it. That
may take 15 seconds. It ends with exit code 1 if the message was not delivered.`,
		example: `  licet webhooks test ` + exampleEndpoint,
		args:    cobra.ExactArgs(1), route: "POST /v1/webhook_endpoints/{endpoint_id}/test", scope: "webhooks",
		run: func(c *session, args []string) error {
			var came *client.WebhookTest
			err := c.show(func(api *client.Client, as ...client.CallOption) (err error) {
				came, err = api.TestWebhook(c.ctx, args[0], as...)
				return err
			})
			if err == nil && !came.Delivered {
				return fmt.Errorf("the message was not delivered: %s", plain(came.Failure))
			}
			return err
		},
	})
}
