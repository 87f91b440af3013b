package node_test

import (
	"context"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
)

// TestGuarded: a guarded record that its command leaves alone is written along with a change of another record, and
// not without such a change.
func TestGuarded(t *testing.T) {
	commits := 0
	db := &hookedCommits{Store: nodetest.OpenStore(t), before: func() { commits++ }}
	n := nodetest.New(t, db)
	guarded, changed := nodetest.Grant(t, n, 0), nodetest.Grant(t, n, 0)
	by := func(key licensing.LicenseKey) licensing.Target {
		return licensing.Target{Key: key, Caller: nodetest.Owner}
	}
	swap := func() {
		t.Helper()
		refs := []licensing.Ref{licensing.LicenseRef(guarded), licensing.LicenseRef(changed)}
		if _, err := n.WithRecordLocks(nodetest.Context(t), refs, func(ctx context.Context) (licensing.Result, error) {
			return n.SwapTogether(ctx,
				node.Step{Ref: refs[0], Cmd: licensing.ReinstateLicense{Target: by(guarded)}, Guarded: true},
				node.Step{Ref: refs[1], Cmd: licensing.SuspendLicense{Target: by(changed)}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	for try, want := range []int{1, 0} { // the second time, no command changes anything
		commits = 0
		if swap(); commits != want {
			t.Errorf("try %d: %d commits, want %d", try, commits, want)
		}
	}
}
