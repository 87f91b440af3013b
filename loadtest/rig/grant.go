package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"licet/client"
)

const (
	grantSize     = 1000 // licenses of one request: the API's limit
	grantWorkers  = 8
	grantPatience = time.Minute // how long a request is repeated that a busy service has refused
)

// Grant makes licenses over the API of a service, so the service itself stores them.
// Grant calls done with the number of licenses so far, from several goroutines.
func Grant(ctx context.Context, url, apiKey string, count, maxDevices int, done func(int)) (*Keys, error) {
	api, err := client.New(url, apiKey, client.RetryFor(grantPatience))
	if err != nil {
		return nil, err
	}
	defer api.CloseIdleConnections()
	batches := make([][]client.License, (count+grantSize-1)/grantSize)
	errs := make([]error, grantWorkers)
	var next, granted atomic.Int64
	var group sync.WaitGroup
	for w := range grantWorkers {
		group.Go(func() {
			for ctx.Err() == nil && errs[w] == nil {
				i := int(next.Add(1) - 1)
				if i >= len(batches) {
					return
				}
				size := min(grantSize, count-i*grantSize)
				grant := client.Grant{ProductID: "editor", Quantity: size, MaxDevices: &maxDevices}
				if batches[i], errs[w] = api.GrantLicenses(ctx, grant); errs[w] == nil && len(batches[i]) != size {
					errs[w] = fmt.Errorf("the answer has %d licenses, not %d", len(batches[i]), size)
				}
				done(int(granted.Add(int64(size))))
			}
		})
	}
	group.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, fmt.Errorf("grant licenses: %w", err)
	}
	all := &Keys{}
	for _, batch := range batches {
		for i := range batch {
			if err := all.Add([]byte(batch[i].LicenseKey)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}
