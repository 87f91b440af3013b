package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// pace spreads kills over operations: each kill is due at some number of operations, and
// operations wait before they would reach the kill after the next one. So nodes are killed
// throughout, however fast the machine is.
type pace struct {
	operations, kills int

	mu     sync.Mutex
	moved  *sync.Cond
	done   int  // operations
	killed int  // kills whose nodes are back
	over   bool // there are no more operations
}

func newPace(operations, kills int) *pace {
	p := &pace{operations: operations, kills: kills}
	p.moved = sync.NewCond(&p.mu)
	return p
}

// dueAt returns after how many operations a kill is due; the first kill is number 1.
func (p *pace) dueAt(kill int) int { return kill * p.operations / (p.kills + 1) }

// wait waits until a condition is met, or ctx ends. The lock is held.
func (p *pace) wait(ctx context.Context, met func() bool) {
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.moved.Broadcast()
	})
	defer stop()
	for !met() && ctx.Err() == nil {
		p.moved.Wait()
	}
}

// proceed waits until an operation may begin.
func (p *pace) proceed(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait(ctx, func() bool { return p.killed+2 > p.kills || p.done < p.dueAt(p.killed+2) })
}

// operated counts an operation.
func (p *pace) operated() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.moved.Broadcast()
}

// count is how many operations there were.
func (p *pace) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// finish records that there are no more operations.
func (p *pace) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.moved.Broadcast()
}

// next waits until the next kill is due. It reports whether there is one.
func (p *pace) next(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed == p.kills {
		return false
	}
	p.wait(ctx, func() bool { return p.over || p.done >= p.dueAt(p.killed+1) })
	return ctx.Err() == nil && !p.over
}

// restarted records that the nodes of a kill are back.
func (p *pace) restarted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed++
	p.moved.Broadcast()
}

// havoc kills nodes, and starts them again.
type havoc struct {
	stage  *stage.Stage
	random *rand.Rand
	times  int
	both   int // of which took two nodes at once
}

// longestAway is how long a node is away at most before it is started again.
const longestAway = time.Second

// strike kills a node, or sometimes two of at least three, and starts them again after a
// moment. The nodes live as long as ctx.
func (h *havoc) strike(ctx context.Context) error {
	first := h.random.IntN(len(h.stage.Nodes))
	victims := []int{first}
	h.times++
	if len(h.stage.Nodes) > 2 && h.times%5 == 0 {
		victims = append(victims, (first+1)%len(h.stage.Nodes))
		h.both++
	}
	for _, node := range victims {
		h.stage.Crash(node)
	}
	rig.Rest(ctx, time.Duration(h.random.Int64N(int64(longestAway))))
	for _, node := range victims {
		if err := h.stage.Nodes[node].Start(ctx); err != nil {
			return fmt.Errorf("start node %d again: %w", node+1, err)
		}
	}
	return ctx.Err()
}
