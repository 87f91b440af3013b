package cli

import (
	"github.com/spf13/cobra"

	"licet/client"
)

// accountGroup builds the commands of licet account.
type accountGroup struct{ Setup }

func (s accountGroup) accountCommands() *cobra.Command {
	return group("account", "Show how much the account stores", `  licet account usage
  licet account usage --output json`,
		s.accountUsage())
}

func (s accountGroup) accountUsage() *cobra.Command {
	return s.command(spec{
		use: "usage", short: "Show how much the account stores, and its budget",
		example: `  licet account usage --output json`,
		route:   "GET /v1/account/usage", scope: "keys:read",
		run: func(c *session, _ []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Usage(c.ctx, as...))
			})
		},
	})
}
