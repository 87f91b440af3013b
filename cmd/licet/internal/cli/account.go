package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"licet/client"
)

// accountGroup builds the commands of licet account.
type accountGroup struct{ Setup }

func (s accountGroup) accountCommands() *cobra.Command {
	return group("account", "Show and change the settings of the account, and show how much it stores",
		`  licet account show
  licet account update --expiring-days 30,7,1`,
		s.accountShow(), s.accountUpdate())
}

func (s accountGroup) accountShow() *cobra.Command {
	return s.command(spec{
		use: "show", short: "Show the settings of the account, how much it stores, and its budget",
		example: `  licet account show --output json`,
		route:   "GET /v1/account", scope: "account:read",
		run: func(c *session, _ []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Account.Get(c.ctx, as...))
			})
		},
	})
}

func (s accountGroup) accountUpdate() *cobra.Command {
	var update client.AccountUpdate
	var days string
	return s.command(spec{
		use: "update", short: "Change the settings of the account",
		example: `  licet account update --external-keys compact
  licet account update --expiring-days 30,7,1`,
		route: "PATCH /v1/account", scope: "account",
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&update.ExternalKeys, "external-keys", "",
				"how the service `matches` external keys: exact, or compact, which ignores case, blanks and dashes; "+
					"fixed once the account has external keys")
			Complete(cmd, "external-keys", client.MatchExact, client.MatchCompact)
			cmd.Flags().StringVar(&days, "expiring-days", "",
				"how many `days` before the end of a license the service records the event license.expiring: up to 5 "+
					"numbers from 1 to 60, with commas between, or none")
			Complete(cmd, "expiring-days", "30,7,1", "none")
			cmd.MarkFlagsOneRequired("external-keys", "expiring-days")
		},
		run: func(c *session, _ []string) (err error) {
			if update.ExpiringDays, err = expiringDays(days); err != nil {
				return err
			}
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Account.Update(c.ctx, update, as...))
			})
		},
	})
}

// expiringDays parses numbers with commas between; nil if the text is empty.
func expiringDays(text string) ([]int, error) {
	switch text {
	case "":
		return nil, nil
	case "none":
		return []int{}, nil
	}
	var days []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, errors.New("--expiring-days must be numbers with commas between, such as 30,7,1, or none")
		}
		days = append(days, n)
	}
	return days, nil
}
