package kv

import (
	"context"
	"sync"

	"licet/licensing"
)

// keyTurns lets each API key be changed once at a time in this store. Changes of
// different keys never wait for each other. Only keys that are being changed take
// memory. The zero value is ready to use.
type keyTurns struct {
	mu    sync.Mutex
	turns map[keyName]*keyTurn
}

// keyName names an API key.
type keyName struct {
	owner licensing.Owner
	id    string
}

// keyTurn is the turn of one API key.
type keyTurn struct {
	taken chan struct{} // holds one token while the key is being changed
	users int           // who holds the turn or waits for it; guarded by keyTurns.mu
}

// take waits for the turn of a key, until ctx ends. The caller must call done once
// the change has ended.
func (t *keyTurns) take(ctx context.Context, name keyName) (done func(), err error) {
	turn := t.join(name)
	select {
	case turn.taken <- struct{}{}:
	case <-ctx.Done():
		t.leave(name, turn)
		return nil, ctx.Err()
	}
	return func() {
		<-turn.taken
		t.leave(name, turn)
	}, nil
}

func (t *keyTurns) join(name keyName) *keyTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.turns[name]
	if turn == nil {
		if t.turns == nil {
			t.turns = make(map[keyName]*keyTurn)
		}
		turn = &keyTurn{taken: make(chan struct{}, 1)}
		t.turns[name] = turn
	}
	turn.users++
	return turn
}

func (t *keyTurns) leave(name keyName, turn *keyTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if turn.users--; turn.users == 0 {
		delete(t.turns, name)
	}
}
