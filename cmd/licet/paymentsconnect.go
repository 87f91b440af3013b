package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/licensing"
	"licet/payment/stripe"
)

func newPaymentsCommand(stdout io.Writer) *cobra.Command {
	connect := cli.Group("connect", newConnectStripe(stdout))
	connect.Short = "Tell a payment provider where to report payments"
	cmd := cli.Group("payments", connect)
	cmd.Short = "Connect a service with a payment provider"
	cmd.Long = "Connect a service with a payment provider. The commands call the provider, not the service."
	cmd.Example = `  licet payments connect stripe --key-file live.key --account-id acct_acme \
    --public-url https://licenses.example.com --webhook-secrets-file live.whsec`
	return cmd
}

// connectStripe contains the flags of licet payments connect stripe.
type connectStripe struct {
	KeyFile, WebhookFile, AccountID, PublicURL, Base string
}

// connectTimeout bounds the requests of the command.
const connectTimeout = 30 * time.Second

func newConnectStripe(stdout io.Writer) *cobra.Command {
	var c connectStripe
	cmd := &cobra.Command{
		Use:   "stripe",
		Short: "Make the webhook endpoint at Stripe and write its secret to a file",
		Long: `Make the webhook endpoint at Stripe through which Stripe reports payments, refunds and disputes,
and write its signing secret to a new file. The mode is that of the key. The endpoint has the
version of Stripe's API that this licet knows. Start the nodes with the file afterwards.

The key needs the permission to write webhook endpoints, which the nodes' key does not need.`,
		Example: `  licet payments connect stripe --key-file live.key --account-id acct_acme \
    --public-url https://licenses.example.com --webhook-secrets-file live.whsec`,
		Args: cli.Arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			mode, err := c.validate()
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), mode, stdout)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.KeyFile, "key-file", "", "`file` with a secret key of Stripe, live or test")
	fs.StringVar(&c.AccountID, "account-id", "", "`id` of the account of the service, such as acct_acme")
	fs.StringVar(&c.PublicURL, "public-url", "", "public `URL` of the service, which Stripe calls")
	fs.StringVar(&c.WebhookFile, "webhook-secrets-file", "", "`file` to create with the signing secret")
	fs.StringVar(&c.Base, "stripe-api-base", stripe.DefaultBase, "`URL` of Stripe's API, or of a stand-in for tests")
	nameVariables(fs)
	return cmd
}

// validate checks the flags, and returns the mode of the key.
func (c *connectStripe) validate() (licensing.Mode, error) {
	switch {
	case c.KeyFile == "":
		return "", badUsage("--key-file must name a file with a secret key of Stripe")
	case !licensing.ValidAccountID(c.AccountID):
		return "", badUsage("--account-id is %q: write the id of an account, such as acct_acme", c.AccountID)
	case c.PublicURL == "":
		return "", badUsage("--public-url must be the URL at which Stripe reaches the service, such as " +
			"https://licenses.example.com")
	case c.WebhookFile == "":
		return "", badUsage("--webhook-secrets-file must name a file to create")
	}
	if err := (&config{PublicURL: c.PublicURL}).validatePublicURL(); err != nil {
		return "", err
	}
	if err := stripe.ValidateBase(c.Base); err != nil {
		return "", badUsage("--stripe-api-base is %q: %w", c.Base, err)
	}
	keys, err := readSecrets(c.KeyFile)
	if err != nil {
		return "", noSecretKey(err)
	}
	mode := licensing.Test
	if len(keys) == 1 && strings.Contains(keys[0], "_live_") {
		mode = licensing.Live
	}
	return mode, nil
}

// run makes the endpoint. It creates the file first, since Stripe tells the secret only once.
func (c *connectStripe) run(ctx context.Context, mode licensing.Mode, stdout io.Writer) (err error) {
	secrets, err := loadStripeSecrets(c.KeyFile, "", mode == licensing.Live, zerolog.Nop())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.WebhookFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%s exists: name a file that does not exist yet", c.WebhookFile)
	case err != nil:
		return err
	}
	written := false
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
		if !written {
			_ = os.Remove(c.WebhookFile)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	provider := stripe.New(stripe.Config{
		Secrets: secrets.get, Live: mode == licensing.Live, Client: stripe.NewClient(c.Base), Clock: time.Now,
	})
	url := fmt.Sprintf("%s/v1/callbacks/stripe/%s/%s", strings.TrimSuffix(c.PublicURL, "/"), c.AccountID, mode)
	endpoint, err := provider.Connect(ctx, url)
	if err != nil {
		return err
	}
	written = true
	if _, err = fmt.Fprintln(file, endpoint.Secret); err != nil {
		return fmt.Errorf("the endpoint %s is there, but its secret is not in %s: delete the endpoint in Stripe's "+
			"dashboard and run this command again: %w", endpoint.ID, c.WebhookFile, err)
	}
	_, err = fmt.Fprintf(stdout, "Stripe reports the payments of %s in %s mode to %s.\nThe signing secret is in %s.\n",
		c.AccountID, mode, url, c.WebhookFile)
	return err
}
