package cli

import (
	"github.com/spf13/cobra"

	"licet/client"
)

// accountGroup builds the commands of licet account.
type accountGroup struct{ Setup }

func (s accountGroup) accountCommands() *cobra.Command {
	return group("account", "Show and change the settings of the account, and show how much it stores",
		`  licet account show
  licet account update --external-keys compact`,
		s.accountShow(), s.accountUpdate())
}

func (s accountGroup) accountShow() *cobra.Command {
	return s.command(spec{
		use: "show", short: "Show the settings of the account, how much it stores, and its budget",
		example: `  licet account show --output json`,
		route:   "GET /v1/account", scope: "account:read",
		run: func(c *session, _ []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Account(c.ctx, as...))
			})
		},
	})
}

func (s accountGroup) accountUpdate() *cobra.Command {
	var update client.AccountUpdate
	return s.command(spec{
		use: "update", short: "Change the settings of the account",
		example: `  licet account update --external-keys compact`,
		route:   "PATCH /v1/account", scope: "account",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&update.ExternalKeys, "external-keys", "",
				"how the service `matches` external keys: exact, or compact, which ignores case, blanks and dashes; "+
					"fixed once the account has external keys")
			Complete(cmd, "external-keys", client.MatchExact, client.MatchCompact)
			_ = cmd.MarkFlagRequired("external-keys")
		},
		run: func(c *session, _ []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.UpdateAccount(c.ctx, update, as...))
			})
		},
	})
}
