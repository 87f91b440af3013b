package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"testing"

	"licet/loadtest/rig"
)

const testKey = "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1"

func TestActivationRequest(t *testing.T) {
	hex := regexp.MustCompile("^[0-9a-f]{64}$")
	a := newActivation(&rig.Keys{Length: len(testKey)})
	seen := map[string]bool{}
	for salt := range uint64(3) {
		for number := range uint64(100) {
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(a.of([]byte(testKey), device{salt, number}))))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			var body map[string]string
			if err := json.Unmarshal(text, &body); err != nil {
				t.Fatal(err)
			}
			if r.Method != "POST" || r.URL.Path != "/v1/licenses/activate" || body["license_key"] != testKey ||
				!hex.MatchString(body["device_id"]) || len(body["device_name"]) != 24 || len(body) != 3 {
				t.Fatalf("%s %s %s", r.Method, r.URL, text)
			}
			if seen[body["device_id"]] {
				t.Fatalf("device %d of %d has the id of another", number, salt)
			}
			seen[body["device_id"]] = true
		}
	}
}

func TestGuessRequest(t *testing.T) {
	key := regexp.MustCompile("^LIC(-[0-9A-HJKMNP-TV-Z]{5}){5}$")
	g := newGuess()
	seen := map[string]bool{}
	for i := range 1000 {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(g.of(i))))
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		if _, err := netip.ParseAddr(r.Header.Get("X-Forwarded-For")); err != nil {
			t.Fatal(err)
		}
		if r.Method != "POST" || r.URL.Path != "/v1/licenses/activate" || !key.MatchString(body["license_key"]) ||
			seen[body["license_key"]] {
			t.Fatalf("%s %s %v", r.Method, r.URL, body)
		}
		seen[body["license_key"]] = true
	}
}

func TestPatterns(t *testing.T) {
	pick := spread(10, 1)
	for i, want := range map[int]device{0: {1, 0}, 9: {1, 9}, 10: {2, 0}, 25: {3, 5}} {
		if license, d := pick(i); license != i%10 || d != want {
			t.Errorf("operation %d: license %d, %+v", i, license, d)
		}
	}
	fresh := map[uint64]bool{}
	for i := range 10_000 {
		_, d := mixed(50, 1000)(i)
		if d.number >= 1000 {
			fresh[d.number] = true
		} else if d.number >= 50 {
			t.Fatalf("device %d is neither bound nor new", d.number)
		}
	}
	if len(fresh) < 1900 || len(fresh) > 2100 {
		t.Errorf("%d of 10,000 are new", len(fresh))
	}
}
