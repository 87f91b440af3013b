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
	var email, reference string
	return s.command(spec{
		use: "redact", short: "Remove the personal data of a buyer",
		long: `Remove the personal data of a buyer who asks to be forgotten: the e-mail address, description,
metadata and reason of each order with that address, and the address, customer reference,
metadata and reasons of its license and of each granted license with that address. By
--customer-reference, remove these from each license with that reference; an order of such a
license keeps its data. Nothing else in orders and licenses changes. This can't be undone: the
command asks for confirmation on a terminal.

If the command is interrupted, repeat it to continue. The service stores later orders of the
buyer as usual. docs/guides/personal-data.md lists what stays, and how long etcd and backups
keep the removed data.`,
		example: `  licet redact --buyer-email anna@example.com
  licet redact --customer-reference C-1017`,
		route: "POST /v1/redactions", scope: "orders and licenses", resumes: true,
		resumeHint: "repeat the command to continue",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&email, "buyer-email", "", "e-mail `address` of the buyer, in upper or lower case")
			cmd.Flags().StringVar(&reference, "customer-reference", "", "`reference` of the customer, exactly")
			yesFlag(cmd)
			cmd.MarkFlagsOneRequired("buyer-email", "customer-reference")
			cmd.MarkFlagsMutuallyExclusive("buyer-email", "customer-reference")
		},
		run: func(c *session, _ []string) error {
			question := fmt.Sprintf("Remove the personal data of %s from all orders and licenses", email)
			if reference != "" {
				question = fmt.Sprintf("Remove the personal data from all licenses with the customer reference "+
					"%s, not from their orders,", reference)
			}
			if err := c.confirm("%s at %s? This can't be undone.", question, c.target.url); err != nil {
				return err
			}
			return c.redact(email, reference)
		},
	})
}

// redact repeats the request until it is complete. All requests have the same Idempotency-Key, so each response counts
// the changes of all requests.
func (c *session) redact(email, reference string) error {
	key := client.IdempotencyKey(rand.Text())
	bar := terminal.NewMeter(c.stderr, "orders and licenses", false)
	defer bar.Clear()
	for {
		var done *client.Redaction
		data, err := c.ask(func(api *client.Client, as ...client.CallOption) (err error) {
			if reference != "" {
				done, err = api.Redactions.RedactCustomer(c.ctx, reference, append(as, key)...)
			} else {
				done, err = api.Redactions.RedactBuyer(c.ctx, email, append(as, key)...)
			}
			return err
		})
		if err != nil {
			return err
		}
		bar.Set(int64(done.Orders+done.Licenses), -1)
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
