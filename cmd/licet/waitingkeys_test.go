package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/internal/etcdtest"
	"licet/kv"
)

// TestWaitsEndWithTheirAPIKey: an API key that is revoked at one node, or that expires, ends its waits
// for events at another node within two seconds, and gets no event afterward. A change of another
// key ends no wait.
func TestWaitsEndWithTheirAPIKey(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	start := func() *process {
		p := startServe(t, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ","))
		p.key = key
		return p
	}
	here, there := start(), start()
	const slack = 5 * time.Second // of a busy machine; a wait takes 25
	for _, how := range []string{"revoked", "expired"} {
		body := `{"name":"tail","scopes":["events:read"]}`
		ends := time.Now().Add(10 * time.Second) // a busy machine needs seconds until the waits have begun
		if how == "expired" {
			body = fmt.Sprintf(`{"name":"tail","scopes":["events:read"],"expires_at":%q}`, ends.UTC().Format(time.RFC3339Nano))
		}
		made := here.want(t, 201, "POST", "/v1/keys", body).Data
		at := here.want(t, 200, "GET", "/v1/events?after=now", "").Data.text("next_cursor")
		waits := func(key string) <-chan reply {
			caller := there.api
			caller.key = key
			answer := make(chan reply, 1)
			go func() {
				r, err := caller.send(t.Context(), "GET", "/v1/events?wait=25&cursor="+at, "")
				if err != nil {
					t.Error(err)
				}
				answer <- r
			}()
			return answer
		}
		ended, other := waits(made.text("api_key")), waits(key)
		select {
		case r := <-ended:
			t.Fatalf("%s: it did not wait: %s", how, r.body)
		case <-time.After(500 * time.Millisecond):
		}
		if how == "revoked" {
			here.want(t, 200, "DELETE", "/v1/keys/"+made.text("id"), "")
			ends = time.Now()
		}
		r := <-ended
		if late := time.Since(ends); r.status != 401 || r.Code != 40100 || late > 2*time.Second+slack ||
			late < -time.Second {
			t.Errorf("%s: %v after its end the wait is answered %s", how, late, r.body)
		}
		here.grant(t, 1)
		if r := <-other; r.status != 200 || len(r.Data.list("events")) != 1 {
			t.Errorf("%s: the wait of another key is answered %s", how, r.body)
		}
	}
}
