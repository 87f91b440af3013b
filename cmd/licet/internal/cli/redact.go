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
		use: "redact", short: "Remove the personal data of a buyer",
		long: `Remove the personal data of a buyer who asks to be forgotten: the e-mail address, description,
metadata and reason of each order with that address, and the address, customer reference,
metadata and reasons of its license and of each granted license with that address. Nothing
else in orders and licenses changes. This can't be undone: the command asks for confirmation
on a terminal.

If the command is interrupted, repeat it to continue. The service stores later orders of the
buyer as usual. docs/guides/personal-data.md lists what stays, and how long etcd and backups
keep the removed data.`,
		example: `  licet redact --buyer-email anna@example.com`,
		route:   "POST /v1/redactions", scope: "orders and licenses", resumes: true,
		resumeHint: "repeat the command to continue",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&email, "buyer-email", "", "e-mail `address` of the buyer, in upper or lower case")
			yesFlag(cmd)
			_ = cmd.MarkFlagRequired("buyer-email")
		},
		run: func(c *session, _ []string) error {
			if err := c.confirm("Remove the personal data of %s from all orders and licenses at %s? This can't be "+
				"undone.", email, c.target.url); err != nil {
				return err
			}
			return c.redact(email)
		},
	})
}

// redact repeats the request until it is complete. All requests have the same Idempotency-Key, so each response counts
// the changes of all requests.
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

// printRedaction prints the number of redacted orders and licenses.
func (c *session) printRedaction(data json.RawMessage) error {
	var done client.Redaction
	if err := json.Unmarshal(data, &done); err != nil || c.json {
		return c.print(data)
	}
	return c.write(fmt.Appendf(nil, "%s and %s redacted\n", counted(done.Orders, "order"),
		counted(done.Licenses, "license")))
}
