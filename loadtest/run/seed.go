package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"licet/loadtest/rig"
)

// seeded is a license that was granted before the load.
type seeded struct {
	group *group
	key   string
	bound []string // device ids
}

// seed grants a scenario's licenses, and binds the devices that they have from
// the beginning.
func (s *stage) seed(ctx context.Context, cfg *config, progress *rig.Progress) ([]seeded, error) {
	var all []seeded
	for i := range cfg.scenario.Licenses {
		g := &cfg.scenario.Licenses[i]
		size := g.size(cfg.rate, cfg.duration)
		count := progress.Long(size, "granting %d licenses: %s", size, g.Name)
		keys, err := rig.Grant(ctx, s.urls[0], s.apiKey, size, g.MaxDevices, count)
		if err != nil {
			return nil, err
		}
		first := len(all)
		for j := range size {
			all = append(all, seeded{group: g, key: string(keys.At(j))})
		}
		if g.Bound == 0 {
			continue
		}
		count = progress.Long(size, "binding %d devices", size*g.Bound)
		if err := s.bindAll(ctx, all[first:], count); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// bindAll gives each license its devices.
func (s *stage) bindAll(ctx context.Context, licenses []seeded, count func(int)) error {
	var list []*seeded
	for i := range licenses {
		list = append(list, &licenses[i])
	}
	var done atomic.Int64
	return eachOf(ctx, list, func(l *seeded) error {
		err := s.bind(ctx, l)
		count(int(done.Add(int64(len(l.bound)))))
		return err
	})
}

// seedDevice is the id of a license's n-th device; the scripts know it too.
func seedDevice(n int) string { return fmt.Sprintf("seed-%d", n) }

func (s *stage) bind(ctx context.Context, l *seeded) error {
	for n := range l.group.Bound {
		device := seedDevice(n)
		body := fmt.Sprintf(`{"license_key":%q,"device_id":%q}`, l.key, device)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.urls[0]+"/v1/licenses/activate", strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		if err := s.ask(request, nil); err != nil {
			return fmt.Errorf("bind a device: %w", err)
		}
		l.bound = append(l.bound, device)
	}
	return nil
}

// ask sends a request and puts what the answer's envelope has into data. Any
// answer that is no success is an error.
func (s *stage) ask(request *http.Request, data any) error {
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	envelope := struct {
		Code    *int   `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		return fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if envelope.Code == nil || *envelope.Code != 0 || response.StatusCode >= http.StatusMultipleChoices {
		return &refusal{status: response.StatusCode, code: envelope.Code, message: envelope.Message}
	}
	return nil
}

// refusal is an answer that is no success.
type refusal struct {
	status  int
	code    *int
	message string
}

func (r *refusal) Error() string {
	if r.code == nil {
		return fmt.Sprintf("status %d, without a code", r.status)
	}
	return fmt.Sprintf("%d: %s", *r.code, r.message)
}
