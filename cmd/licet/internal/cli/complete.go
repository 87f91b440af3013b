package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
)

const (
	// completeWithin bounds the time that a shell waits for completions.
	completeWithin = 2 * time.Second
	// completeMost is how many of the latest items are completed.
	completeMost = 50
)

// candidates lists values that a user may mean, the latest first, each with a word about it.
type candidates func(ctx context.Context, api *client.Client, args []string) ([]cobra.Completion, error)

// completed maps the arguments in usage lines to what completes them.
var completed = map[string]candidates{
	"PRODUCT_ID":     products,
	"LICENSE_KEY":    recentLicenses,
	"LICENSE_KEY...": recentLicenses,
	"ORDER_NO":       recentOrders,
	"ENDPOINT_ID":    endpoints,
	"KEY_ID":         apiKeys,
	"DEVICE_ID":      devices,
}

// completedFlags maps flags to what completes their values.
var completedFlags = map[string]candidates{"product-id": products, "order-no": recentOrders}

// completeFromService lets shells complete arguments and flags with values of the service that the command would call.
func (s Setup) completeFromService(cmd *cobra.Command, settings *Service, is spec) {
	names := strings.Fields(is.use)[1:]
	cmd.ValidArgsFunction = func(
		cmd *cobra.Command, args []string, _ string,
	) ([]cobra.Completion, cobra.ShellCompDirective) {
		at := len(args)
		if n := len(names); n > 0 && at >= n && strings.HasSuffix(names[n-1], "...") {
			at = n - 1
		}
		switch {
		case at >= len(names):
			return nil, cobra.ShellCompDirectiveNoFileComp
		case strings.Trim(names[at], "[]") == "FILE":
			return nil, cobra.ShellCompDirectiveDefault
		case names[at] == "LICENSE_KEY" && is.scope == "": // a command of end users: only the key authorizes them
			return s.candidates(cmd, settings, args, recentKeys)
		}
		return s.candidates(cmd, settings, args, completed[names[at]])
	}
	for flag, list := range completedFlags {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag,
				func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
					return s.candidates(cmd, settings, args, list)
				})
		}
	}
}

// candidates asks the service. Without a service, an API key or an answer, nothing is completed: a message would spoil
// the command line.
func (s Setup) candidates(
	cmd *cobra.Command, settings *Service, args []string, list candidates,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if list == nil {
		return nil, directive
	}
	at, err := s.Locate(settings, cmd.Flags())
	if err != nil || at.URL == "" || at.APIKey == "" {
		return nil, directive
	}
	api, err := client.New(at.URL, at.APIKey, append(at.Options, client.RetryFor(0))...)
	if err != nil {
		return nil, directive
	}
	defer api.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	found, err := list(ctx, api, args)
	if err != nil {
		return nil, directive
	}
	return found, directive
}

// listed returns the completions of the items on a page.
func listed[T any](page *client.List[T], err error, of func(*T) (value, about string)) ([]cobra.Completion, error) {
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	for i := range page.Items {
		value, about := of(&page.Items[i])
		found = append(found, cobra.CompletionWithDesc(plain(value), plain(about)))
	}
	return found, nil
}

func products(ctx context.Context, api *client.Client, _ []string) ([]cobra.Completion, error) {
	page, err := api.Products.List(ctx, client.Page{Limit: completeMost})
	return listed(page, err, func(p *client.Product) (string, string) { return p.ProductID, p.Name })
}

// recentLicenses lists licenses by id: a command line goes into the history of the shell, and an id is no secret.
func recentLicenses(ctx context.Context, api *client.Client, _ []string) ([]cobra.Completion, error) {
	return licensesBy(ctx, api, func(l *client.License) string { return l.ID })
}

func recentKeys(ctx context.Context, api *client.Client, _ []string) ([]cobra.Completion, error) {
	return licensesBy(ctx, api, func(l *client.License) string { return l.LicenseKey })
}

func licensesBy(
	ctx context.Context, api *client.Client, name func(*client.License) string,
) ([]cobra.Completion, error) {
	page, err := api.Licenses.List(ctx, client.LicenseFilter{}, client.Page{Limit: completeMost})
	return listed(page, err, func(l *client.License) (string, string) {
		return name(l), l.Status + ", " + l.ProductID
	})
}

func recentOrders(ctx context.Context, api *client.Client, _ []string) ([]cobra.Completion, error) {
	page, err := api.Orders.List(ctx, client.OrderFilter{}, client.Page{Limit: completeMost})
	return listed(page, err, func(o *client.Order) (string, string) { return o.OrderNo, o.Status + ", " + o.ProductID })
}

func endpoints(ctx context.Context, api *client.Client, _ []string) ([]cobra.Completion, error) {
	page, err := api.Webhooks.List(ctx, client.Page{})
	return listed(page, err, func(w *client.Webhook) (string, string) { return w.ID, w.URL })
}

func apiKeys(ctx context.Context, api *client.Client, _ []string) ([]cobra.Completion, error) {
	page, err := api.APIKeys.List(ctx, client.Page{Limit: completeMost})
	return listed(page, err, func(k *client.Key) (string, string) { return k.ID, k.Name })
}

// devices lists the devices of the license that the command line names before.
func devices(ctx context.Context, api *client.Client, args []string) ([]cobra.Completion, error) {
	if len(args) == 0 {
		return nil, nil
	}
	page, err := api.Licenses.ListDevices(ctx, args[0], client.Page{Limit: completeMost})
	return listed(page, err, func(d *client.Device) (string, string) { return d.DeviceID, d.DeviceName })
}
