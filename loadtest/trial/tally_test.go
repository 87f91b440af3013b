package trial

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

func TestEachComesOnce(t *testing.T) {
	var tally Tally
	var list []int
	for i := range 100 {
		list = append(list, i)
	}
	if err := rig.Each(t.Context(), len(list), 16, func(_ context.Context, i int) error {
		tally.Did(fmt.Sprint(list[i]))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r := tally.Report()
	if len(r.counts) != len(list) {
		t.Errorf("of %d things %d were done", len(list), len(r.counts))
	}
	for _, line := range r.counts {
		if !strings.HasSuffix(line, "\t1") {
			t.Errorf("more than once: %s", line)
		}
	}
}

func TestErrListsAllProblems(t *testing.T) {
	var tally Tally
	if err := tally.Err(); err != nil {
		t.Error(err)
	}
	tally.Problem("a")
	tally.Problem("b")
	if err := tally.Err(); err == nil || err.Error() != "a\nb" {
		t.Errorf("got %v", err)
	}
}

// TestClientCountsRetries loses one response, gets one refusal, and then the requested result.
func TestClientCountsRetries(t *testing.T) {
	var calls atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":50300,"message":"?","error":{"reason":"unavailable","retryable":true}}`)
		default:
			_, _ = io.WriteString(w, `{"code":0,"message":"success","data":{"order_no":"ord_1"}}`)
		}
	}))
	defer node.Close()
	s := &stage.Stage{Nodes: []*rig.Node{{Address: node.Listener.Addr().String()}}}
	var tally Tally
	c, err := tally.Client(s.Balancer(), time.Minute, "")
	if err != nil {
		t.Fatal(err)
	}
	if o, err := c.Orders.Get(t.Context(), "ord_1"); err != nil || o.OrderNo != "ord_1" {
		t.Fatalf("%+v, %v", o, err)
	}
	if got := tally.Report().counts; !slices.Equal(got,
		[]string{"sent again after: 50300 unavailable\t1", "sent again after: no answer\t1"}) {
		t.Errorf("counted %q", got)
	}
}
