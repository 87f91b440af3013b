package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/trial"
	"licet/loadtest/webhooks"
)

// stored contains the records that a journal names, as read over the API.
type stored struct {
	licenses map[string]*storedLicense
	orders   map[string]*client.Order
	lists    []lists        // one for each account
	totals   map[string]int // keys by family, of the whole store; nil if others use the store too
}

type storedLicense struct {
	client.License
	devices map[string]bool
}

// prove reads everything back, ends the nodes and has licet store verify read the store, and
// compares.
func prove(ctx context.Context, s *service, seeds []*seeded, out *results) (*proof, error) {
	j, st, err := s.evidence(ctx, seeds, out)
	if err != nil {
		return nil, err
	}
	var hooked *webhooks.Result
	if s.hooks != nil {
		if hooked, err = s.hooks.Audit(ctx, changesOf(j, st)); err != nil {
			return nil, err
		}
		s.hooks.Stop() // otherwise each node waits for the endpoint that hangs
	}
	var end trial.Report
	if s.Scene != nil {
		st.totals = s.Shut(ctx, &end)
	}
	p := compare(j, st)
	p.addEvents(hooked)
	p.Problems = append(p.Problems, end.Problems...)
	return p, nil
}

// evidence reads the journal, and everything that it names.
func (s *service) evidence(ctx context.Context, seeds []*seeded, out *results) (*journal, *stored, error) {
	j, err := readJournal(seeds, out)
	if err != nil {
		return nil, nil, err
	}
	accounts, err := s.ready(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer accounts[0].CloseIdleConnections()
	if err := awaitLapses(ctx, accounts, j); err != nil {
		return nil, nil, fmt.Errorf("wait until the leases have lapsed: %w", err)
	}
	st, err := readBack(ctx, accounts, j)
	if err != nil {
		return nil, nil, fmt.Errorf("read back what is stored: %w", err)
	}
	if st.lists, err = readLists(ctx, accounts); err != nil {
		return nil, nil, fmt.Errorf("read the lists: %w", err)
	}
	return j, st, nil
}

// readBack reads all licenses and orders that a journal names, each as its account.
func readBack(ctx context.Context, accounts []*client.Client, j *journal) (*stored, error) {
	st := &stored{licenses: map[string]*storedLicense{}, orders: map[string]*client.Order{}}
	licenses := map[string]int{} // their accounts
	for key, l := range j.licenses {
		licenses[key] = l.account
	}
	var mu sync.Mutex
	// keep enters a record that was read. A record that the service does not know is left out: compare finds that it is
	// missing.
	keep := func(err error, enter func()) error {
		mu.Lock()
		defer mu.Unlock()
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
			return nil
		}
		if err == nil {
			enter()
		}
		return err
	}
	numbers := slices.Collect(maps.Keys(j.orders))
	if err := rig.Each(ctx, len(numbers), preparers, func(ctx context.Context, i int) error {
		account := j.orders[numbers[i]].account
		order, err := accounts[account].Orders.Get(ctx, numbers[i])
		return keep(err, func() {
			st.orders[numbers[i]] = order
			if order.LicenseKey != "" {
				licenses[order.LicenseKey] = account
			}
		})
	}); err != nil {
		return nil, err
	}
	keys := slices.Collect(maps.Keys(licenses))
	return st, rig.Each(ctx, len(keys), preparers, func(ctx context.Context, i int) error {
		license, err := readLicense(ctx, accounts[licenses[keys[i]]], keys[i])
		return keep(err, func() { st.licenses[keys[i]] = license })
	})
}

// readLicense reads a license with all its devices.
func readLicense(ctx context.Context, api *client.Client, key string) (*storedLicense, error) {
	license, err := api.Licenses.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	l := &storedLicense{License: *license, devices: map[string]bool{}}
	for _, device := range license.Devices {
		l.devices[device.DeviceID] = true
	}
	if license.DevicesNextCursor == "" {
		return l, nil
	}
	for device, err := range api.Licenses.AllDevices(ctx, key) {
		if err != nil {
			return nil, err
		}
		l.devices[device.DeviceID] = true
	}
	return l, nil
}
