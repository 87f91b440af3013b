package service

import (
	"fmt"
	"testing"

	"licet/licensing"
)

// TestLeaseSeries: products of one owner take no series from another owner, and no lease is left out of the sum.
func TestLeaseSeries(t *testing.T) {
	t.Parallel()
	many := licensing.Owner{AccountID: "acct_many", Mode: licensing.Live}
	few := licensing.Owner{AccountID: "acct_few", Mode: licensing.Test}
	counts := map[leasedProduct]int{{few, "a"}: 2, {few, "b"}: 1}
	sum := 3
	for i := range 2 * maxLeaseSeries {
		counts[leasedProduct{many, fmt.Sprint("p", i)}] = 10 + i
		sum += 10 + i
	}
	got := make(map[string]float64)
	for _, s := range leaseSeries(counts) {
		got[fmt.Sprint(s.Labels)] = s.Value
		sum -= int(s.Value)
	}
	if len(got) != maxLeaseSeries+1 || sum != 0 {
		t.Errorf("%d series, %d leases too few", len(got), sum)
	}
	for labels, want := range map[string]float64{
		"[acct_few test a]": 2, "[acct_few test b]": 1,
		fmt.Sprintf("[acct_many live p%d]", 2*maxLeaseSeries-1): 10 + 2*maxLeaseSeries - 1,
	} {
		if got[labels] != want {
			t.Errorf("%s has %v, want %v", labels, got[labels], want)
		}
	}
}
