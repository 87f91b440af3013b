package trial

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
)

// TestPaceHasEveryKillComeInTime lets operations run as fast as they can.
func TestPaceHasEveryKillComeInTime(t *testing.T) {
	const operations, kills = 1000, 9
	p := NewPace(operations, kills)
	var begun atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for begun.Add(1) <= operations {
				p.Proceed(t.Context())
				p.Operated()
			}
		})
	}
	for kill := 1; p.next(t.Context()); kill++ {
		if done := p.count(); done < p.dueAt(kill) || done > p.dueAt(kill+1)+4 {
			t.Errorf("kill %d came after %d operations, and was due at %d", kill, done, p.dueAt(kill))
		}
		p.restarted()
	}
	group.Wait()
	if p.killed != kills || p.count() != operations {
		t.Errorf("%d kills, %d operations", p.killed, p.count())
	}
}

func (p *Pace) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// TestPaceEnds ends operations before the kills: waiting operations and kills give up.
func TestPaceEnds(t *testing.T) {
	p := NewPace(100, 10)
	p.Operated()
	p.finish()
	if p.next(t.Context()) {
		t.Error("a kill is due though there are no operations any more")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	late := NewPace(100, 10)
	for range 30 {
		late.Operated()
	}
	late.Proceed(ctx) // returns
	if late.next(ctx) {
		t.Error("a kill is due though everything ends")
	}
}
