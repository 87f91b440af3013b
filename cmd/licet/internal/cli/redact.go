package cli

import (
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/cmd/licet/internal/terminal"
)

func (s Setup) redactCommand() *cobra.Command {
	var email string
	return s.command(spec{
		use: "redact", short: "Remove what is noted of a buyer",
		long: `Remove what is noted of a buyer who asks to be forgotten: the e-mail address, the
description, the metadata and the reason of each order with that address, and the
metadata and the reason of its license. All else goes on as before. It can't be
undone, so on a terminal it asks before.

What is written later is kept. If it breaks off, the same command goes on with the
rest. docs/guides/personal-data.md says what stays, and for how long etcd and backups keep
what was removed.`,
		example: `  licet redact --buyer-email anna@example.com`,
		args:    cobra.NoArgs, route: "POST /v1/redactions", scope: "orders and licenses", goesOn: true,
		rest: "the same command goes on with the rest",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&email, "buyer-email", "", "e-mail `address` of the buyer, in any case")
			yesFlag(cmd)
			_ = cmd.MarkFlagRequired("buyer-email")
		},
		run: func(c *session, _ []string) error {
			if err := c.confirm("Remove what is noted of %s from all orders and licenses at %s? That can't be undone.", email, c.target.url); err != nil {
				return err
			}
			return c.redact(email)
		},
	})
}

// redact asks until nothing is left. All requests have one Idempotency-Key, so that
// each answer counts what all of them have done.
func (c *session) redact(email string) error {
	key := client.IdempotencyKey(rand.Text())
	bar := terminal.NewMeter(c.stderr, "orders", false)
	defer bar.Clear()
	for {
		var done *client.Redaction
		data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
			done, err = api.RedactBuyer(c.ctx, email, append(as, key)...)
			return err
		})
		if err != nil {
			return err
		}
		bar.Set(int64(done.Orders), -1)
		if done.Complete {
			bar.Clear()
			return c.printRedaction(data)
		}
	}
}

// printRedaction prints what was done. That it is complete needs no saying to people.
func (c *session) printRedaction(data json.RawMessage) error {
	var done client.Redaction
	if err := json.Unmarshal(data, &done); err != nil || c.json {
		return c.print(data)
	}
	return c.write(fmt.Appendf(nil, "%s and %s redacted\n", counted(done.Orders, "order"), counted(done.Licenses, "license")))
}
