package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"licet/client"
)

// receiptGroup builds the commands of licet receipts.
type receiptGroup struct{ Setup }

func (s receiptGroup) receiptCommands() *cobra.Command {
	return group("receipts", "Receipt files for devices without network, and the keys that sign receipts",
		`  licet receipts issue request.txt
  licet receipts root
  licet receipts rotate`,
		s.receiptsIssue(), s.receiptsVerify(), s.receiptsRelease(), s.receiptsRoot(), s.receiptsRotate(),
		s.receiptsRevocations())
}

func (s receiptGroup) receiptsRevocations() *cobra.Command {
	var after int64
	return s.command(spec{
		use: "revocations ACCOUNT_ID MODE", short: "Print the signed list of receipts that are void",
		long: `Print the signed list of receipts of an account and mode that are void before their end, as programs
get the list. With --after, the list may have only entries newer than your list.`,
		example: `  licet receipts revocations acct_01jd4p0x2q7w8r9s live
  licet receipts revocations acct_01jd4p0x2q7w8r9s test --after 4711`,
		route: "GET /v1/accounts/{account_id}/{mode}/revocations", noOutput: true,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().Int64Var(&after, "after", 0, "the `epoch` of a list that you have")
		},
		run: func(c *session, args []string) error {
			list, err := c.client.Revocations(c.ctx, args[0], args[1], after, "")
			if err != nil {
				return err
			}
			return c.write([]byte(list.Text + "\n"))
		},
	})
}

func (s receiptGroup) receiptsRoot() *cobra.Command {
	return s.command(spec{
		use: "root", short: "Print the root key, which your program verifies receipts with",
		long: `Print the public half of the root key of the account and mode. Put it into your program: the program
verifies receipts with it. It is no secret and never changes. With --output json, the command also
shows the keys that the root key signs.`,
		example: `  licet receipts root
  licet receipts root --output json`,
		route: "PUT /v1/receipt_keys", scope: "account",
		run: func(c *session, _ []string) error {
			data, err := c.ask(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Receipts.Keys(c.ctx, as...))
			})
			if err != nil {
				return err
			}
			if c.json {
				return c.print(data)
			}
			var keys client.ReceiptKeys
			if err := json.Unmarshal(data, &keys); err != nil {
				return err
			}
			return c.write([]byte(keys.Root + "\n"))
		},
	})
}

func (s receiptGroup) receiptsRotate() *cobra.Command {
	return s.command(spec{
		use: "rotate", short: "Add a key that signs receipts",
		long: `Add a receipt key. Nodes sign with it after ten minutes. The previous key stays in the set of keys until
the last receipt that the previous key may have signed has ended. The root key does not change.`,
		example: `  licet receipts rotate`,
		route:   "PUT /v1/receipt_keys/next", scope: "account",
		run: func(c *session, _ []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Receipts.RotateKeys(c.ctx, as...))
			})
		},
	})
}
