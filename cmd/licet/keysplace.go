package main

import (
	"os"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/licensing"
)

// place tells where a command of licet keys works: on a store, for which it then
// completes and checks the settings, or on a service, which it gives what is
// called of. The command line decides, else the environment, else the profile in
// use. Nothing is guessed where both are named in the same way.
func (c *keysConfig) place(cmd *cobra.Command) (*cli.KeyCall, error) {
	flags := cmd.Flags()
	service, serviceVariable := c.setup.Named(flags)
	store := flags.Changed("etcd-endpoints") || flags.Changed("data-dir")
	storeVariable := os.Getenv("LICET_ETCD_ENDPOINTS") != "" || os.Getenv("LICET_DATA_DIR") != ""
	switch {
	case store && service:
		return nil, badUsage("the command line names a store and a service: which one?")
	case store:
		return nil, c.complete(cmd)
	case service:
		return c.call(cmd)
	case storeVariable && serviceVariable:
		return nil, badUsage("the environment names a store (LICET_ETCD_ENDPOINTS or LICET_DATA_DIR) and a service (LICET_URL, LICET_API_KEY or LICET_PROFILE): say on the command line which one, with --etcd-endpoints or --data-dir, or with --url or --profile")
	case storeVariable:
		return nil, c.complete(cmd)
	case serviceVariable || c.setup.HasProfile():
		return c.call(cmd)
	}
	return nil, badUsage("which API keys? Of a service: say --url or --profile, or set LICET_URL and LICET_API_KEY. Of a store, for the first key: --etcd-endpoints must name its etcd, or --data-dir the directory of a stopped licet dev")
}

// complete takes what the environment says of a store, and checks all of it.
func (c *keysConfig) complete(cmd *cobra.Command) error {
	if err := c.fromEnvironment(cmd.Flags(), storeVariables); err != nil {
		return err
	}
	return c.validate()
}

// storeVariables looks up what is not about a service.
func storeVariables(name string) (string, bool) {
	switch name {
	case "LICET_URL", "LICET_API_KEY_FILE", "LICET_PROFILE", "LICET_SIGN", "LICET_LIMIT", "LICET_CURSOR", "LICET_ALL":
		return "", false
	}
	return os.LookupEnv(name)
}

// call makes what calls the service. The API key that it is called with has an
// account and a mode, and the service has the master keys.
func (c *keysConfig) call(cmd *cobra.Command) (*cli.KeyCall, error) {
	for _, name := range []string{"account", "mode", "master-key-file", "etcd-ca", "etcd-cert", "etcd-key"} {
		if cmd.Flags().Changed(name) {
			return nil, badUsage("--%s is for a store (--etcd-endpoints or --data-dir), and this goes to a service, where the API key decides", name)
		}
	}
	return &cli.KeyCall{Setup: c.setup, Cmd: cmd, Service: &c.Service, Output: c.Output}, nil
}

func newKeysGet(setup cli.Setup) *cobra.Command {
	var c keysConfig
	cmd := &cobra.Command{
		Use:     "get KEY_ID",
		Short:   "Look an API key up, through the service",
		Example: `  licet keys get key_01jd4q8x2m7r3n5t9v1w4y6z8a`,
		Args:    oneKeyID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.KeyCall{Setup: setup, Cmd: cmd, Service: &c.Service, Output: c.Output}.Get(args[0])
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&c.Output, "output", "o", "table", "`format` of what is printed: table or json ($LICET_OUTPUT)")
	c.Service.AddFlags(cmd.Flags())
	completeKeys(cmd)
	return cmd
}

// scopeWords are the scopes that an API key can have.
func scopeWords() []string {
	words := []string{"*"}
	for _, scope := range licensing.Scopes() {
		words = append(words, scope, scope+":read")
	}
	return words
}

// completeKeys lets shells complete the values of flags.
func completeKeys(cmd *cobra.Command) {
	for flag, values := range map[string][]string{"output": {"table", "json"}, "mode": {"test", "live"}, "scopes": scopeWords()} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}
