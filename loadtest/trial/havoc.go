package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// Pace spreads kills over operations: each kill is due at some number of operations, and
// operations wait before they would reach the kill after the next one. So nodes are killed
// throughout, however fast the machine is.
type Pace struct {
	kills      int
	operations int

	mu     sync.Mutex
	moved  *sync.Cond
	done   int  // operations
	killed int  // kills whose nodes are back
	over   bool // there are no more operations
}

// NewPace returns the pace of so many kills during so many operations.
func NewPace(operations, kills int) *Pace {
	p := &Pace{kills: kills, operations: operations}
	p.moved = sync.NewCond(&p.mu)
	return p
}

// dueAt returns after how many operations a kill is due; the first kill is number 1.
func (p *Pace) dueAt(kill int) int { return kill * p.operations / (p.kills + 1) }

// wait waits until a condition is met, or ctx ends. The caller holds the lock.
func (p *Pace) wait(ctx context.Context, met func() bool) {
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

// Proceed waits until an operation may begin.
func (p *Pace) Proceed(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait(ctx, func() bool { return p.killed+2 > p.kills || p.done < p.dueAt(p.killed+2) })
}

// Operated counts an operation, and returns how many there were.
func (p *Pace) Operated() (done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.moved.Broadcast()
	return p.done
}

// finish records that there are no more operations.
func (p *Pace) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.moved.Broadcast()
}

// next waits until the next kill is due. It reports whether there is one.
func (p *Pace) next(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed == p.kills {
		return false
	}
	p.wait(ctx, func() bool { return p.over || p.done >= p.dueAt(p.killed+1) })
	return ctx.Err() == nil && !p.over
}

// strike calls kill, which kills nodes and starts them again, whenever a kill is due, until operations end or ctx ends.
func (p *Pace) strike(ctx context.Context, kill func() error) error {
	for p.next(ctx) {
		if err := kill(); err != nil {
			return err
		}
		p.restarted()
	}
	return nil
}

// restarted records that the nodes of a kill are back.
func (p *Pace) restarted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed++
	p.moved.Broadcast()
}

// Havoc kills nodes, and starts them again.
type Havoc struct {
	Times int
	Both  int // of which took two nodes at once

	stage  *stage.Stage
	random *rand.Rand
}

// NewHavoc returns the havoc of a stage. The seed decides which nodes are killed.
func NewHavoc(s *stage.Stage, seed uint64) *Havoc {
	return &Havoc{stage: s, random: rand.New(rand.NewPCG(seed, 3))}
}

// longestAway is how long a node is away at most before it is started again.
const longestAway = time.Second

// Strike kills a node, or sometimes two of at least three, and starts them again after a
// moment. The nodes live as long as ctx.
func (h *Havoc) Strike(ctx context.Context) error {
	first := h.random.IntN(len(h.stage.Nodes))
	victims := []int{first}
	h.Times++
	if len(h.stage.Nodes) > 2 && h.Times%5 == 0 {
		victims = append(victims, (first+1)%len(h.stage.Nodes))
		h.Both++
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
