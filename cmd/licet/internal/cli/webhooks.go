package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/licensing"
)

// webhookGroup builds the commands of licet webhooks.
type webhookGroup struct{ Setup }

func (s webhookGroup) webhookCommands() *cobra.Command {
	return group("webhooks", "Send events to your own servers",
		`  licet webhooks create https://shop.example.com/licet --event-types order.paid,order.refunded
  licet webhooks test `+exampleEndpoint+`
  licet webhooks deliveries `+exampleEndpoint+` --status pending`,
		s.webhooksCreate(), s.webhooksList(), s.webhooksGet(), s.webhooksUpdate(), s.webhooksDelete(),
		s.webhooksRotate(),
		s.webhooksTest(), s.webhooksDeliveries(), s.webhooksReplay())
}

const exampleEndpoint = "we_vq01jd4q8x2m7r3n5t9v1w4y6z8a"

// typesFlag adds the flag for the types of events that an endpoint receives.
func typesFlag(cmd *cobra.Command, into *[]string, without string) {
	cmd.Flags().StringSliceVar(into, "event-types", nil,
		"`types` of events to send, separated by commas, such as order.paid, or * ("+without+")")
	Complete(cmd, "event-types", append([]string{client.AllTypes}, words(licensing.EventTypes())...)...)
}

func (s webhookGroup) webhooksCreate() *cobra.Command {
	var in client.NewWebhook
	return s.command(spec{
		use: "create ENDPOINT_URL", short: "Create an endpoint that receives events",
		long: `Create an endpoint that receives new events. The command prints the secret that signs its messages.
Licet can't print the secret again.`,
		example: `  licet webhooks create https://shop.example.com/licet
  licet webhooks create https://shop.example.com/licet --event-types order.paid --description "Mails to buyers"`,
		route: "POST /v1/webhook_endpoints", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			typesFlag(cmd, &in.Types, "default: all")
			cmd.Flags().StringVar(&in.Description, "description", "", "`description` of the endpoint, for people")
			onceFlag(cmd.Flags())
		},
		run: func(c *session, args []string) error {
			in.URL = args[0]
			var made *client.Webhook
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
				made, err = api.Webhooks.Create(c.ctx, in, as...)
				return err
			})
			if err != nil {
				return err
			}
			if err := c.printOnce(data); err != nil {
				return fmt.Errorf("created the endpoint %s but could not print its secret; rotate the secret: %w",
					made.ID, err)
			}
			fmt.Fprintf(c.stderr, "Keep the secret: licet can't print it again. Give it to the receiver, and then "+
				"run: licet webhooks test %s\n", made.ID)
			return nil
		},
	})
}

func (s webhookGroup) webhooksList() *cobra.Command {
	return s.command(spec{
		use: "list", short: "List endpoints, newest first",
		example: `  licet webhooks list
  licet webhooks list --output json`,
		route: "GET /v1/webhook_endpoints", scope: "webhooks:read",
		flags: func(cmd *cobra.Command) { listFlags(cmd, pageStandard, pageMost) },
		run: func(c *session, _ []string) error {
			return c.list(listing{
				member:  "webhook_endpoints",
				columns: []string{"id", "url", "status", "disabled_because", "event_types", "waiting", "description"},
				create:  "licet webhooks create https://shop.example.com/licet creates an endpoint",
				read: func(api *client.Client, page client.Page, as ...client.CallOption) (string, error) {
					return next(api.Webhooks.List(c.ctx, page, as...))
				},
			}, pageMost)
		},
	})
}

func (s webhookGroup) webhooksGet() *cobra.Command {
	return s.command(spec{
		use: "get ENDPOINT_ID", short: "Show an endpoint with the state of its deliveries",
		example: `  licet webhooks get ` + exampleEndpoint,
		route:   "GET /v1/webhook_endpoints/{endpoint_id}", scope: "webhooks:read",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Webhooks.Get(c.ctx, args[0], as...))
			})
		},
	})
}

func (s webhookGroup) webhooksUpdate() *cobra.Command {
	var url, description string
	var types []string
	var enabled bool
	return s.command(spec{
		use: "update ENDPOINT_ID", short: "Change an endpoint",
		long: `Change an endpoint. Flags that you leave out keep their values. If you enable a disabled
endpoint, it receives the events that were stored while it was disabled.`,
		example: `  licet webhooks update ` + exampleEndpoint + ` --enabled=false
  licet webhooks update ` + exampleEndpoint + ` --endpoint-url https://shop.example.com/events --event-types '*'`,
		route: "PATCH /v1/webhook_endpoints/{endpoint_id}", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			fs := cmd.Flags()
			fs.StringVar(&url, "endpoint-url", "", "`URL` that receives the events")
			typesFlag(cmd, &types, "*: all")
			fs.StringVar(&description, "description", "", "`description` of the endpoint, for people")
			fs.BoolVar(&enabled, "enabled", true, "send events to the endpoint")
			cmd.MarkFlagsOneRequired("endpoint-url", "event-types", "description", "enabled")
		},
		run: func(c *session, args []string) error {
			in := client.WebhookUpdate{
				URL: changed(c, "endpoint-url", url), Description: changed(c, "description", description),
				Types: types, Enabled: changed(c, "enabled", enabled),
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Webhooks.Update(c.ctx, args[0], in, as...))
			})
		},
	})
}

func (s webhookGroup) webhooksDelete() *cobra.Command {
	return s.command(spec{
		use: "delete ENDPOINT_ID", short: "Remove an endpoint",
		long:    "Remove an endpoint with its deliveries. The command asks for confirmation on a terminal.",
		example: `  licet webhooks delete ` + exampleEndpoint,
		route:   "DELETE /v1/webhook_endpoints/{endpoint_id}", scope: "webhooks",
		flags: yesFlag,
		run: func(c *session, args []string) error {
			if err := c.confirm("Remove the webhook endpoint %s at %s, with its undelivered events?", args[0],
				c.target.url); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return api.Webhooks.Delete(c.ctx, args[0], as...)
			})
		},
	})
}

func (s webhookGroup) webhooksRotate() *cobra.Command {
	var overlap time.Duration
	return s.command(spec{
		use: "rotate ENDPOINT_ID", short: "Replace the secret of an endpoint",
		long: `Replace the secret of an endpoint and print the new secret; licet can't print it again. During the
overlap messages are signed with both secrets, so the receiver has time to change.`,
		example: `  licet webhooks rotate ` + exampleEndpoint + ` --overlap 48h`,
		route:   "POST /v1/webhook_endpoints/{endpoint_id}/rotate", scope: "webhooks",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour,
				"how `long` messages are also signed with the previous secret, at most 720h")
			onceFlag(cmd.Flags())
		},
		run: func(c *session, args []string) error {
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Webhooks.Rotate(c.ctx, args[0], client.Rotation{Overlap: &overlap}, as...))
			})
			if err != nil {
				return err
			}
			if err := c.printOnce(data); err != nil {
				return fmt.Errorf("created a new secret but could not print it; rotate the secret again: %w", err)
			}
			what := "Add it to the receiver, and remove the previous secret after the overlap."
			if overlap == 0 {
				what = "Replace the previous secret in the receiver: it signs nothing any more."
			}
			fmt.Fprintln(c.stderr, "Keep the secret: licet can't print it again. "+what)
			return nil
		},
	})
}

func (s webhookGroup) webhooksTest() *cobra.Command {
	return s.command(spec{
		use: "test ENDPOINT_ID", short: "Send a test message to an endpoint",
		long: `Send a message of type webhook.ping to an endpoint once, and print the outcome. The command may take
15 seconds. Exit code 1 means that the endpoint did not accept the message.`,
		example: `  licet webhooks test ` + exampleEndpoint,
		route:   "POST /v1/webhook_endpoints/{endpoint_id}/test", scope: "webhooks",
		run: func(c *session, args []string) error {
			var came *client.WebhookTest
			err := c.show(func(api *client.Client, as ...client.CallOption) (err error) {
				came, err = api.Webhooks.Test(c.ctx, args[0], as...)
				return err
			})
			if err == nil && !came.Delivered {
				return fmt.Errorf("the message was not delivered: %s", plain(came.Failure))
			}
			return err
		},
	})
}
