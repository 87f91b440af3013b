package rig

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"licet/client"
)

const (
	grantSize     = 1000 // licenses of one request: the API's limit
	grantWorkers  = 8
	grantPatience = time.Minute // how long a request is repeated that a busy service has refused
)

// Grant makes licenses of a product over the API of a service, so the service itself stores them.
// Grant calls done with the number of licenses so far, from several goroutines.
func Grant(ctx context.Context, url, apiKey, product string, count, maxDevices int, done func(int)) (*Keys, error) {
	api, err := client.New(url, apiKey, client.RetryFor(grantPatience))
	if err != nil {
		return nil, err
	}
	defer api.CloseIdleConnections()
	batches := make([][]client.License, (count+grantSize-1)/grantSize)
	var granted atomic.Int64
	if err := Each(ctx, len(batches), grantWorkers, func(ctx context.Context, i int) (err error) {
		size := min(grantSize, count-i*grantSize)
		grant := client.Grant{ProductID: product, Quantity: size, MaxDevices: &maxDevices}
		if batches[i], err = api.Licenses.Grant(ctx, grant); err == nil && len(batches[i]) != size {
			err = fmt.Errorf("the answer has %d licenses, not %d", len(batches[i]), size)
		}
		done(int(granted.Add(int64(size))))
		return err
	}); err != nil {
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
