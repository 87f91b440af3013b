package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
	"licet/cmd/licet/internal/terminal"
	"licet/internal/backoff"
)

// rolloutPoll is the pause between two looks at a rollout.
const rolloutPoll = time.Second / 2

func (s productGroup) productsRollout() *cobra.Command {
	var rollout client.NewRollout
	return s.command(spec{
		use: "rollout PRODUCT_ID", short: "Apply the terms of a product to earlier licenses",
		long: `Apply terms that a product has now to the licenses that were issued before. The service does this
in the background; --wait waits for the end.

A rollout removes no device: a license with more devices than the new limit keeps its limit. It
replaces a limit that "licet licenses update" has set. --dry-run changes nothing and counts.`,
		example: `  licet products rollout studio --terms entitlements --dry-run --wait
  licet products rollout studio --terms entitlements,max_devices --wait`,
		route: "POST /v1/products/{product_id}/rollout", scope: "products",
		flags: func(cmd *cobra.Command) {
			terms := []string{client.RolloutEntitlements, client.RolloutMaxDevices, client.RolloutSelfService,
				client.RolloutRemovalsPerMonth, client.RolloutInactiveAfter, client.RolloutDeviceMatch,
				client.RolloutGrace, client.RolloutReceipt, client.RolloutReceiptValidity,
				client.RolloutRevocationMaxAge, client.RolloutLeaseSeconds, client.RolloutMaxLeaseSeconds}
			fs := cmd.Flags()
			fs.StringSliceVar(&rollout.Terms, "terms", nil, "`terms` to apply: "+strings.Join(terms, ", "))
			fs.BoolVar(&rollout.DryRun, "dry-run", false, "only count the licenses")
			waitFlag(cmd)
			onceFlag(fs)
			Complete(cmd, "terms", terms...)
			_ = cmd.MarkFlagRequired("terms")
		},
		run: func(c *session, args []string) error {
			return c.showRollout(args[0], func(api *client.Client, as ...client.CallOption) error {
				return only(api.Rollouts.Begin(c.ctx, args[0], rollout, as...))
			})
		},
	})
}

func (s productGroup) productsRolloutStatus() *cobra.Command {
	return s.command(spec{
		use: "rollout-status PRODUCT_ID", short: "Show the latest rollout of a product",
		example: `  licet products rollout-status studio --wait`,
		route:   "GET /v1/products/{product_id}/rollout", scope: "products:read",
		flags: waitFlag,
		run: func(c *session, args []string) error {
			return c.showRollout(args[0], func(api *client.Client, as ...client.CallOption) error {
				return only(api.Rollouts.Get(c.ctx, args[0], as...))
			})
		},
	})
}

func (s productGroup) productsCancelRollout() *cobra.Command {
	return s.command(spec{
		use: "cancel-rollout PRODUCT_ID", short: "Cancel the rollout of a product",
		long:    "Cancel the rollout of a product. Licenses that have the terms keep them.",
		example: `  licet products cancel-rollout studio`,
		route:   "DELETE /v1/products/{product_id}/rollout", scope: "products",
		run: func(c *session, args []string) error {
			return c.show(func(api *client.Client, as ...client.CallOption) error {
				return only(api.Rollouts.Cancel(c.ctx, args[0], as...))
			})
		},
	})
}

func waitFlag(cmd *cobra.Command) { cmd.Flags().Bool("wait", false, "wait for the end of the rollout") }

// showRollout prints a rollout, with --wait once it has ended. q asks for it the first time.
func (c *session) showRollout(productID string, q question) error {
	wait, _ := c.cmd.Flags().GetBool("wait")
	bar := terminal.NewMeter(c.stderr, "licenses", false)
	defer bar.Clear()
	for said := false; ; q = func(api *client.Client, as ...client.CallOption) error {
		return only(api.Rollouts.Get(c.ctx, productID, as...))
	} {
		data, err := c.ask(q)
		if err != nil {
			return err
		}
		var now client.Rollout
		if err := json.Unmarshal(data, &now); err != nil {
			return err
		}
		if !wait || !now.EndedAt.IsZero() {
			bar.Clear()
			return c.print(data)
		}
		if now.Status == client.RolloutPaused && !said {
			said = true
			fmt.Fprintln(c.stderr,
				"licet: the account has reached its storage budget; the rollout tries again by itself")
		}
		bar.Set(int64(now.Licenses), -1)
		if !backoff.Sleep(c.ctx, rolloutPoll) {
			return errors.New("interrupted: the rollout goes on")
		}
	}
}
