package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
	"licet/loadtest/trial"
	"licet/loadtest/webhooks"
)

// service is what k6 sends the load to: nodes that were started for it, or a service
// that runs already.
type service struct {
	*trial.Scene // nil: the service runs already
	urls         []string
	apiKeys      []string            // of each account
	run          string              // marks what this run makes, in a store that others use too
	hooks        *webhooks.Endpoints // nil: the scenario has no webhooks
}

// patience is how long a service may take after the load until it is ready again, and
// how long a request is repeated.
const patience = 30 * time.Second

// preparers is how many goroutines create keys, grant licenses and bind devices before the load.
const preparers = 16

func newService(ctx context.Context, cfg *config, progress *rig.Progress) (_ *service, err error) {
	s := &service{urls: cfg.targets, apiKeys: []string{cfg.apiKey}, run: strconv.FormatInt(time.Now().UnixMilli(), 36)}
	if len(cfg.targets) > 0 {
		return s, nil
	}
	flags := append(stage.Together(), "--public-url", stage.PublicURL, "--webhook-allow-networks", "127.0.0.0/8")
	if s.Scene, err = cfg.NewScene(ctx, progress, programName, 0, 0, flags...); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for _, n := range s.Stage.Nodes {
		s.urls = append(s.urls, "http://"+n.Address)
	}
	s.apiKeys = make([]string, cfg.accounts)
	s.apiKeys[0] = s.APIKey
	err = rig.Each(ctx, cfg.accounts-1, preparers, func(ctx context.Context, i int) (err error) {
		s.apiKeys[i+1], err = s.Stage.Licet.CreateKey(ctx, s.Stage.Etcd, fmt.Sprintf("load%d", i+1))
		return err
	})
	if err != nil || !cfg.scenario.Webhooks {
		return s, err
	}
	desk, err := new(trial.Tally).Client(s.Balancer, 2*stage.Patience, s.APIKey)
	if err != nil {
		return nil, err
	}
	s.hooks, err = webhooks.Open(ctx, desk, cfg.Seed, cfg.failures)
	return s, err
}

// stop ends what was started, and removes the store.
func (s *service) stop() {
	s.hooks.Stop()
	s.Stop()
}

// clients returns a client of one address for each account. They share their connections. If the service was started
// here, each request goes to a random node, so pages of one list come from several nodes.
func (s *service) clients(url string) (all []*client.Client, err error) {
	shared := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	if s.Scene != nil {
		shared.Transport = s.Balancer
	}
	for _, apiKey := range s.apiKeys {
		c, err := client.New(url, apiKey, client.RetryFor(patience), client.WithHTTPClient(shared))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// ready returns clients of the first node that is ready, and waits for one if need be.
func (s *service) ready(ctx context.Context) ([]*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		for _, url := range s.urls {
			if rig.Ready(ctx, http.DefaultClient, url+"/readyz") {
				return s.clients(url)
			}
		}
		if rig.Rest(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return nil, fmt.Errorf("no node is ready within %v of the load's end", patience)
		}
	}
}

// seeded is a license that was granted before the load.
type seeded struct {
	group   *group
	key     string
	account int      // index of its API key
	bound   []string // device ids
}

// seedDevice returns the id of a license's n-th device; the scripts know it too.
func seedDevice(n int) string { return fmt.Sprintf("seed-%d", n) }

// seed grants a scenario's licenses, and binds the devices that the licenses have from
// the beginning.
func (s *service) seed(ctx context.Context, cfg *config, progress *rig.Progress) ([]*seeded, error) {
	api, err := client.New(s.urls[0], "", client.RetryFor(patience)) // activating takes no API key
	if err != nil {
		return nil, err
	}
	defer api.CloseIdleConnections()
	var all []*seeded
	for i := range cfg.scenario.Licenses {
		g := &cfg.scenario.Licenses[i]
		size := g.size(cfg.rate, cfg.duration)
		count := progress.Long(size, "granting %d licenses: %s", size, g.Name)
		first := len(all)
		for j := range size {
			all = append(all, &seeded{group: g, account: j % len(s.apiKeys)})
		}
		if err := s.grant(ctx, all[first:], count); err != nil {
			return nil, err
		}
		if g.Bound == 0 {
			continue
		}
		count = progress.Long(size, "binding %d devices", size*g.Bound)
		if err := bind(ctx, api, all[first:], count); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// grant grants the licenses of a group, to each account its own.
func (s *service) grant(ctx context.Context, licenses []*seeded, count func(int)) error {
	of := make([][]*seeded, len(s.apiKeys))
	for _, l := range licenses {
		of[l.account] = append(of[l.account], l)
	}
	var done atomic.Int64
	group := licenses[0].group
	product, terms := group.product()
	return rig.Each(ctx, min(len(of), len(licenses)), preparers, func(ctx context.Context, account int) error {
		if group.LeaseSeconds > 0 {
			if err := putProduct(ctx, s.urls[0], s.apiKeys[account], product, terms); err != nil {
				return err
			}
		}
		keys, err := rig.Grant(ctx, s.urls[0], s.apiKeys[account], product, len(of[account]), group.MaxDevices,
			func(int) {})
		if err != nil {
			return err
		}
		for i, l := range of[account] {
			l.key = string(keys.At(i))
		}
		count(int(done.Add(int64(len(of[account])))))
		return nil
	})
}

// putProduct creates or replaces a product of an account.
func putProduct(ctx context.Context, url, apiKey, id string, terms client.ProductTerms) error {
	api, err := client.New(url, apiKey, client.RetryFor(patience))
	if err != nil {
		return err
	}
	defer api.CloseIdleConnections()
	if _, err := api.Products.Put(ctx, id, terms); err != nil {
		return fmt.Errorf("put the product %s: %w", id, err)
	}
	return nil
}

// bind binds the devices that licenses have from the beginning.
func bind(ctx context.Context, api *client.Client, licenses []*seeded, count func(int)) error {
	var done atomic.Int64
	return rig.Each(ctx, len(licenses), preparers, func(ctx context.Context, i int) error {
		l := licenses[i]
		for n := range l.group.Bound {
			device := seedDevice(n)
			if _, err := api.Activate(ctx, client.Activation{LicenseKey: l.key, DeviceID: device}); err != nil {
				return fmt.Errorf("bind a device: %w", err)
			}
			l.bound = append(l.bound, device)
		}
		count(int(done.Add(int64(len(l.bound)))))
		return nil
	})
}
