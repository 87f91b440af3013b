package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"licet/loadtest/rig"
)

// stored is what a store has of all that a journal names, read over the API.
type stored struct {
	licenses map[string]*storedLicense
	orders   map[string]*storedOrder
	totals   map[string]int // keys by family, of the whole store; nil where it is not this run's alone
}

type storedLicense struct {
	OrderNo        *string `json:"order_no"`
	MaxDevices     int     `json:"max_devices"`
	CurrentDevices int     `json:"current_devices"`
	devicePage
	Next *string `json:"devices_next_cursor"`

	devices map[string]bool
}

// devicePage is one page of a license's devices.
type devicePage struct {
	Devices []struct {
		ID string `json:"device_id"`
	} `json:"devices"`
}

type storedOrder struct {
	Status     string `json:"status"`
	LicenseKey string `json:"license_key"`
}

const (
	// readers is how many requests read at a time, or bind before the load.
	readers       = 16
	answerTimeout = 10 * time.Second
)

// prove reads everything back, has licet store verify read the store itself, and
// compares.
func prove(ctx context.Context, s *stage, seeds []seeded, out *results, progress *rig.Progress) (*proof, error) {
	j := newJournal()
	j.seed(seeds)
	file, err := os.Open(out.path("journal.txt"))
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer file.Close()
	if err := j.read(file); err != nil {
		return nil, err
	}
	at, err := s.someURL(ctx)
	if err != nil {
		return nil, err
	}
	st, err := s.readBack(ctx, at, j)
	if err != nil {
		return nil, fmt.Errorf("read back what is stored: %w", err)
	}
	if s.licet == nil {
		return compare(j, st), nil
	}
	progress.Step("licet store verify")
	st.totals, err = s.verify(ctx)
	p := compare(j, st)
	if err != nil {
		p.problem("%v", err)
	}
	return p, nil
}

// readBack reads all licenses and orders that a journal names.
func (s *stage) readBack(ctx context.Context, at string, j *journal) (*stored, error) {
	st := &stored{licenses: map[string]*storedLicense{}, orders: map[string]*storedOrder{}}
	var mu sync.Mutex
	licenses := maps.Clone(j.licenses)
	err := eachOf(ctx, slices.Collect(maps.Keys(j.orders)), func(number string) error {
		order := &storedOrder{}
		found, err := s.get(ctx, at+"/v1/orders/"+url.PathEscape(number), order)
		if err != nil || !found {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		st.orders[number] = order
		if order.LicenseKey != "" {
			licenses[order.LicenseKey] = nil
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = eachOf(ctx, slices.Collect(maps.Keys(licenses)), func(key string) error {
		license, err := s.readLicense(ctx, at, key)
		if err != nil || license == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		st.licenses[key] = license
		return nil
	})
	return st, err
}

// readLicense reads a license with all its devices; nil where there is none.
func (s *stage) readLicense(ctx context.Context, at, key string) (*storedLicense, error) {
	path := at + "/v1/licenses/" + url.PathEscape(key)
	license := &storedLicense{devices: map[string]bool{}}
	found, err := s.get(ctx, path, license)
	if err != nil || !found {
		return nil, err
	}
	page, next := license.devicePage, license.Next
	for {
		for _, device := range page.Devices {
			license.devices[device.ID] = true
		}
		if next == nil {
			return license, nil
		}
		var more struct {
			devicePage
			Next *string `json:"next_cursor"`
		}
		if _, err := s.get(ctx, path+"/devices?limit=1000&cursor="+url.QueryEscape(*next), &more); err != nil {
			return nil, err
		}
		page, next = more.devicePage, more.Next
	}
}

// get reads one thing; found is false where the service says that there is no
// such thing. What it calls retryable is asked again, for a while.
func (s *stage) get(ctx context.Context, address string, into any) (found bool, err error) {
	until := time.Now().Add(recoveryTime)
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return false, err
		}
		request.Header.Set("Authorization", "Bearer "+s.apiKey)
		err = s.ask(request, into)
		var refused *refusal
		switch isRefused := errors.As(err, &refused); {
		case err == nil:
			return true, nil
		case isRefused && refused.status == http.StatusNotFound:
			return false, nil
		case !isRefused || refused.status < http.StatusInternalServerError || time.Now().After(until):
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// eachOf does something for each of many things, some at a time.
func eachOf[T any](ctx context.Context, list []T, do func(T) error) error {
	errs := make([]error, readers)
	var next atomic.Int64
	var group sync.WaitGroup
	for w := range readers {
		group.Go(func() {
			for ctx.Err() == nil && errs[w] == nil {
				i := int(next.Add(1) - 1)
				if i >= len(list) {
					return
				}
				errs[w] = do(list[i])
			}
		})
	}
	group.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// verify runs licet store verify on the store, and gives how many keys of each
// family it has.
func (s *stage) verify(ctx context.Context) (map[string]int, error) {
	out, failed := s.licet.Command(ctx, "store", "verify", "--output", "json", "--etcd-endpoints", strings.Join(s.etcd.Endpoints, ","))
	var report struct {
		Violations []json.RawMessage `json:"violations"`
		Summary    struct {
			Families map[string]int `json:"families"`
		} `json:"summary"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, errors.Join(failed, fmt.Errorf("licet store verify: %w", err))
	}
	if failed == nil && len(report.Violations) > 0 {
		failed = fmt.Errorf("licet store verify found %d violations", len(report.Violations))
	}
	return report.Summary.Families, failed
}
