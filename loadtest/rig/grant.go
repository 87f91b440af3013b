package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
)

const (
	grantSize    = 1000 // licenses that one request grants: the API's limit
	grantWorkers = 8
	grantTries   = 10
)

// Grant has a service make licenses, over its API: what is stored is what the
// service stores. done is told how many there are, from any goroutine.
func Grant(ctx context.Context, url, apiKey string, count, maxDevices int, done func(int)) (*Keys, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: grantWorkers}}
	defer client.CloseIdleConnections()
	batches := (count + grantSize - 1) / grantSize
	texts := make([]Keys, batches)
	errs := make([]error, grantWorkers)
	var next, granted atomic.Int64
	var group sync.WaitGroup
	for w := range grantWorkers {
		group.Go(func() {
			for ctx.Err() == nil && errs[w] == nil {
				i := int(next.Add(1) - 1)
				if i >= batches {
					return
				}
				size := min(grantSize, count-i*grantSize)
				errs[w] = grantBatch(ctx, client, url, apiKey, size, maxDevices, &texts[i])
				done(int(granted.Add(int64(size))))
			}
		})
	}
	group.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, err
	}
	all := &Keys{}
	for i := range texts {
		for j := range texts[i].Count() {
			if err := all.Add(texts[i].At(j)); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func grantBatch(ctx context.Context, client *http.Client, url, apiKey string, size, maxDevices int, into *Keys) error {
	body, err := grantOnce(ctx, client, url, apiKey, size, maxDevices)
	if err != nil {
		return fmt.Errorf("grant licenses: %w", err)
	}
	// A million of these answers' members would take long to decode.
	const before = `"license_key":"`
	for range size {
		_, rest, found := bytes.Cut(body, []byte(before))
		key, rest, closed := bytes.Cut(rest, []byte(`"`))
		if !found || !closed {
			return fmt.Errorf("grant %d licenses: the answer has fewer", size)
		}
		if err := into.Add(key); err != nil {
			return err
		}
		body = rest
	}
	return nil
}

// grantOnce has licenses granted and gives the answer. A machine that is too busy for that
// is asked again, under the same Idempotency-Key: all of it happens once.
func grantOnce(ctx context.Context, client *http.Client, url, apiKey string, size, maxDevices int) (body []byte, err error) {
	once := ulid.Make().String()
	for try := 1; ; try++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/licenses",
			strings.NewReader(fmt.Sprintf(`{"product_id":"editor","quantity":%d,"max_devices":%d}`, size, maxDevices)))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+apiKey)
		request.Header.Set("Idempotency-Key", once)
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusCreated && bytes.HasPrefix(body, []byte(`{"code":0,`)) {
			return body, nil
		}
		busy := response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusGatewayTimeout
		if !busy || try == grantTries {
			return nil, fmt.Errorf("status %d: %.300s", response.StatusCode, body)
		}
		select {
		case <-time.After(time.Second): // as Retry-After says
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
