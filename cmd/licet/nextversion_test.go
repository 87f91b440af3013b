package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/cmd/licet/internal/doctor"
	"licet/internal/depth"
	"licet/internal/etcdtest"
	programs "licet/internal/process"
	"licet/kv"
)

// TestNextVersion runs this build, as the previous version, beside a build that stands for the next version: with the
// tag licetnext, see licensing/eventlater_next.go and kv/internal/layout/eventformat_next.go. The next version records
// a kind of events, members and a format of stored values that the previous one doesn't know. The previous version goes
// on: its feed, histories, lookups, long polls and webhooks carry the new kind and members through, and have a
// placeholder for the new format. The test builds a program, so it runs at full depth only.
func TestNextVersion(t *testing.T) {
	depth.NeedFull(t)
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "licet-next")
	flags := append([]string{"-tags", "licetnext", "-ldflags", "-X main.version=next"}, depth.BuildFlags()...)
	if err := programs.BuildLicet(t.Context(), "", binary, flags...); err != nil {
		t.Fatal(err)
	}
	cluster := etcdtest.Start(t, 1)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	settings := []string{"--etcd-endpoints", endpoints, "--public-url", "https://licet.example",
		"--webhook-allow-networks", "127.0.0.0/8"}
	previous := startServe(t, append(settings, "--metrics-listen", "127.0.0.1:0")...)
	cmd := exec.Command(binary, serveArgs(t, append(settings, "--webhook-delivery=false"))...)
	cmd.Env = plainEnvironment()
	next := startNode(t, cmd)
	previous.key, next.key = key, key
	wantNodes(t, cluster, doctor.Warning, "the nodes have 2 versions: 1 × "+readBuild().version+", 1 × next")

	// The previous version delivers to all of these.
	endpoint := func(at *process, types string) *shopServer {
		shop := newShopServer(t)
		made := at.want(t, 201, "POST", "/v1/webhook_endpoints",
			`{"url":"`+shop.URL+`/licet","event_types":[`+types+`]}`).Data
		shop.knows(t, made.text("secret"))
		return shop
	}
	all, listed := endpoint(previous, `"*"`), endpoint(previous, `"license.suspended","license.reinstated"`)
	paused, unreadable := endpoint(next, `"license.paused"`), endpoint(previous, `"event.unreadable"`)

	at := previous.want(t, 200, "GET", "/v1/events?after=now", "").Data.text("next_cursor")
	polled := make(chan reply, 1)
	go func() {
		r, err := previous.send(t.Context(), "GET", "/v1/events?types=license.reinstated&wait=25&cursor="+at, "")
		if err != nil {
			t.Error(err)
		}
		polled <- r
	}()

	licenses := map[string]string{}
	for _, product := range []string{"editor", "next-kind", "next-format"} {
		order := next.want(t, 201, "POST", "/v1/orders",
			`{"product_id":"`+product+`","amount":0,"currency":"USD"}`).Data
		licenses[product] = order.text("license_key")
		next.want(t, 200, "POST", "/v1/licenses/"+licenses[product]+"/suspend", `{}`)
	}
	previous.want(t, 200, "POST", "/v1/licenses/"+licenses["next-format"]+"/reinstate", `{}`)

	if r := <-polled; r.status != 200 || len(r.Data.list("events")) != 1 {
		t.Errorf("the long poll got %d %s", r.status, r.body)
	}
	feed := func(p *process, after string) (events []map[string]any, types []string) {
		t.Helper()
		for more := true; more; {
			r := p.want(t, 200, "GET", "/v1/events?limit=2&cursor="+after, "")
			var page struct {
				Data struct {
					Events []map[string]any `json:"events"`
					Next   string           `json:"next_cursor"`
					More   bool             `json:"has_more"`
				} `json:"data"`
			}
			if err := json.Unmarshal([]byte(r.body), &page); err != nil {
				t.Fatal(err)
			}
			events, after, more = append(events, page.Data.Events...), page.Data.Next, page.Data.More
		}
		for _, e := range events {
			types = append(types, e["type"].(string))
		}
		return events, types
	}
	old, types := feed(previous, at)
	want := []string{
		"order.created", "order.paid", "license.issued", "license.suspended",
		"order.created", "order.paid", "license.issued", "license.paused",
		"order.created", "order.paid", "license.issued", "event.unreadable", "license.reinstated",
	}
	if !slices.Equal(types, want) {
		t.Fatalf("the previous version's feed has %v", types)
	}
	current, types := feed(next, at)
	want[11] = "license.suspended"
	if !slices.Equal(types, want) {
		t.Fatalf("the next version's feed has %v", types)
	}
	// They differ in nothing else, and the placeholder has what can be known.
	for i := range old {
		e := old[i]
		if i == 11 {
			if data := e["data"].(map[string]any); len(data) != 0 || e["actor"] != "system" {
				t.Errorf("the placeholder is %v", e)
			}
			current[i]["type"], current[i]["actor"], current[i]["data"] = e["type"], e["actor"], e["data"]
		}
		if diff := cmp.Diff(current[i], e); diff != "" {
			t.Errorf("event %d (-next +previous):\n%s", i, diff)
		}
		r := previous.want(t, 200, "GET", "/v1/events/"+e["id"].(string), "")
		var found struct{ Data map[string]any }
		if err := json.Unmarshal([]byte(r.body), &found); err != nil || cmp.Diff(e, found.Data) != "" {
			t.Errorf("%v is found as %s", e, r.body)
		}
		for _, p := range []*process{previous, next} {
			if r := p.want(t, 200, "GET", "/v1/events?limit=100&after="+e["id"].(string),
				""); len(r.Data.list("events")) != len(old)-1-i {
				t.Errorf("after event %d the feed has %s", i, r.body)
			}
		}
	}
	data := old[7]["data"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"days": 30.0}, data["pause"]); diff != "" ||
		data["license"].(map[string]any)["pauses"] != 3.0 {
		t.Errorf("the new members are %v", data)
	}
	for product, want := range map[string][]string{
		"next-kind": {"license.paused", "license.issued"}, "next-format": {"license.reinstated", "event.unreadable",
			"license.issued"},
	} {
		var types []string
		for _, e := range previous.want(t, 200, "GET", "/v1/licenses/"+licenses[product]+"/events",
			"").Data.list("events") {
			types = append(types, e.text("type"))
		}
		if !slices.Equal(types, want) {
			t.Errorf("the history of %s is %v", product, types)
		}
	}

	// Webhooks: an endpoint for all types gets all events, and an endpoint with a list gets the events of its list.
	take := func(shop *shopServer) (m message) {
		t.Helper()
		select {
		case m = <-shop.came:
		case <-time.After(time.Minute):
			t.Fatal("no webhook has come")
		}
		return m
	}
	byID := map[string]message{}
	for len(byID) < len(old) {
		m := take(all)
		byID[m.ID] = m
	}
	for _, e := range old {
		if m := byID[e["id"].(string)]; m.Event == nil || m.Type != e["type"] {
			t.Errorf("instead of %v came %s", e, m.body)
		}
	}
	if m := byID[old[7]["id"].(string)]; !strings.Contains(string(m.Raw), `"pauses":3`) || m.Data.License == nil ||
		m.Data.License.LicenseKey != licenses["next-kind"] {
		t.Errorf("the new kind came as %s", m.body)
	}
	if m := paused.wait(t, "license.paused"); m.ID != old[7]["id"] {
		t.Errorf("to the endpoint of the new kind came %s", m.body)
	}
	if m := unreadable.wait(t, "event.unreadable"); m.ID != old[11]["id"] || !m.Timestamp.IsZero() &&
		m.Timestamp.Year() < 2000 {
		t.Errorf("to the endpoint of placeholders came %s", m.body)
	}
	if first, second := take(listed), take(listed); first.Type == second.Type {
		t.Errorf("to the endpoint of two kinds came %s and %s", first.body, second.body)
	}

	// The value is counted once, logged once, and shown by verify; to the next version all is well.
	const logged = "can't read a stored value"
	if n := previous.metric(t, "licet_event_values_unreadable_total"); n != 1 ||
		strings.Count(previous.log.String(), logged) != 1 {
		t.Errorf("%v values are counted, and %d are logged", n, strings.Count(previous.log.String(), logged))
	}
	previous.log.forgive(logged)
	found := verifyJSONOf(t, exitFailed, "--etcd-endpoints", endpoints).Violations
	if len(found) != 1 || found[0].Family != "event" || found[0].Rule != "value" ||
		found[0].Key != "e/"+old[11]["id"].(string) {
		t.Errorf("the previous version verifies: %+v", found)
	}
	verify := exec.CommandContext(t.Context(), binary, "store", "verify", "--etcd-endpoints", endpoints)
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("the next version verifies: %v: %s", err, out)
	}
}
