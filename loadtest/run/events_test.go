package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"licet/loadtest/rig"
)

// directing returns a director of a foreign service: the director announces its events and does nothing.
func directing(t *testing.T, duration time.Duration, events ...event) *director {
	t.Helper()
	cfg := &config{duration: duration, scenario: &scenario{Events: events}}
	d := newDirector(t.Context(), cfg, &service{}, rig.NewProgress(io.Discard))
	t.Cleanup(d.server.Close)
	return d
}

func call(t *testing.T, method, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: status %d, %v", method, url, response.StatusCode, err)
	}
	return body
}

func TestEventsComeWhenTheLoadHasBegun(t *testing.T) {
	d := directing(t, time.Second, event{At: 0.001, Do: "kill", Node: 1}, event{At: 0.002, Do: "kill leader"})
	if text := string(call(t, http.MethodGet, d.server.URL+"/events")); text != "[]\n" {
		t.Errorf("before the load: %s", text)
	}
	for range 2 { // once is enough, and twice does no harm
		call(t, http.MethodPost, d.server.URL+"/begin")
	}
	<-d.done
	var got []happening
	if err := json.Unmarshal(call(t, http.MethodGet, d.server.URL+"/events"), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].What != "kill node 2" || got[1].What != "kill leader" || got[0].Begun > got[0].Ended ||
		got[0].Ended > got[1].Begun {
		t.Errorf("got %+v", got)
	}
	if err := d.finish(); err != nil {
		t.Error(err)
	}
}

// TestLoadThatProvesNothing: what was to happen did not, or too late.
func TestLoadThatProvesNothing(t *testing.T) {
	if err := directing(t, time.Second).finish(); err == nil || !strings.Contains(err.Error(), "never begun") {
		t.Error(err)
	}
	d := directing(t, time.Hour, event{At: 0.5, Do: "kill"})
	d.begin()
	if err := d.finish(); err == nil || !strings.Contains(err.Error(), "longer --duration") {
		t.Error(err)
	}
	d = directing(t, time.Nanosecond, event{At: 0, Do: "kill"})
	d.begin()
	<-d.done
	d.past[0].Ended += 1000
	if err := d.finish(); err == nil || !strings.Contains(err.Error(), "longer --duration") {
		t.Error(err)
	}
	d = directing(t, time.Hour)
	d.begin()
	if err := d.finish(); err != nil {
		t.Error(err)
	}
}

func TestCheckWeight(t *testing.T) {
	const mebibyte = 1 << 20
	before := weight{100 * mebibyte, 400}
	if err := checkWeight(before, weight{140 * mebibyte, 530}, 1); err != nil {
		t.Error(err)
	}
	for _, after := range []weight{{143 * mebibyte, 400}, {100 * mebibyte, 541}} {
		if err := checkWeight(before, after, 1); err == nil {
			t.Errorf("%v after %v is let pass", after, before)
		}
	}
}
