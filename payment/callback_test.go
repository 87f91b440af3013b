package payment_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"licet/licensing"
	"licet/payment"
)

// alone is a provider whose signatures are all wrong. It counts callers of Callback that are there at the same time.
type alone struct {
	payment.Sandbox
	inside, together atomic.Int32
}

func (p *alone) Callback(string, []byte) (payment.Object, error) {
	if p.inside.Add(1) > 1 {
		p.together.Add(1)
	}
	runtime.Gosched()
	p.inside.Add(-1)
	return payment.Object{}, payment.ErrSignature
}

// TestForgedCallbacks: a node verifies one callback at a time, whichever owners they name.
func TestForgedCallbacks(t *testing.T) {
	provider := &alone{}
	desk := payment.NewDesk(nil, func(licensing.Owner) payment.Provider { return provider })
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			owner := licensing.Owner{AccountID: []string{"acct_a", "acct_b"}[i%2], Mode: licensing.Test}
			for range 200 {
				if _, err := desk.Callback(owner, "", nil); !errors.Is(err, payment.ErrSignature) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if together := provider.together.Load(); together != 0 {
		t.Errorf("%d callbacks were verified together with others", together)
	}
}
