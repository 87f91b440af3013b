package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/internal/depth"
)

const (
	unreadClients = 160
	unreadDevices = 1000
	// unreadGrowth bounds how much the attack may grow the process, in bytes: the responses of one account, 16 lookups
	// under way with all that they take, and garbage.
	unreadGrowth = 384 << 20
)

// TestUnreadResponses: 160 clients that pipeline three lookups of a license with 1,000 devices, and read nothing,
// grow a node by a bounded amount. Bystanders are served meanwhile, and the node closes the connections soon.
func TestUnreadResponses(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	open := api{url: p.url, client: p.client}
	large, small := p.grant(t, 0), p.grant(t, 3)
	long := strings.Repeat("\U0001F600", 250)
	var binding sync.WaitGroup
	places := make(chan struct{}, 32)
	for i := range unreadDevices {
		places <- struct{}{}
		binding.Go(func() {
			defer func() { <-places }()
			open.want(t, 200, "POST", "/v1/licenses/activate",
				fmt.Sprintf(`{"license_key":%q,"device_id":"%s%d","device_name":%q}`, large, long, i, long))
		})
	}
	binding.Wait()

	lookup := fmt.Sprintf("GET /v1/licenses/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", large, p.key)
	before := p.memory(t, "VmHWM")
	began := time.Now()
	var clients sync.WaitGroup
	for range unreadClients {
		clients.Go(func() {
			c, err := net.Dial("tcp", target.Host)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := io.WriteString(c, strings.Repeat(lookup, 3)); err != nil {
				t.Error(err)
				return
			}
			// A write fails once the node has closed the connection. Empty lines before a request mean nothing.
			for time.Since(began) < 30*time.Second {
				time.Sleep(100 * time.Millisecond)
				_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
				if _, err := io.WriteString(c, "\r\n"); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					return
				}
			}
			t.Error("a client that reads nothing was not cut off")
		})
	}
	all := make(chan struct{})
	go func() {
		clients.Wait()
		close(all)
	}()
	bystanders, slowest := 0, time.Duration(0)
	for ended := false; !ended; bystanders++ {
		asked := time.Now()
		if r, err := p.activate(t.Context(), small, "bystander"); err != nil || r.status != 200 {
			t.Errorf("bystander %d: %s, %v", bystanders, r.body, err)
		}
		slowest = max(slowest, time.Since(asked))
		select {
		case <-all:
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	grown := p.memory(t, "VmHWM") - before
	t.Logf("memory grew by %d MiB within %v; %d bystanders, the slowest took %v",
		grown>>20, time.Since(began).Round(time.Millisecond), bystanders, slowest.Round(time.Millisecond))
	if grown > unreadGrowth && !depth.Raced() {
		t.Errorf("memory grew by %d MiB, and %d MiB is the most", grown>>20, unreadGrowth>>20)
	}
}
