package history

import "sync"

// lateWrites counts writes that go on in the background. Further writes may begin during a wait, which a
// [sync.WaitGroup] does not allow.
type lateWrites struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed once there are none; nil if no goroutine waits
}

// Go begins one.
func (l *lateWrites) Go(write func()) {
	l.mu.Lock()
	l.count++
	l.mu.Unlock()
	go func() {
		defer l.done()
		write()
	}()
}

func (l *lateWrites) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count--; l.count == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

// Wait waits until there is none.
func (l *lateWrites) Wait() {
	l.mu.Lock()
	if l.count == 0 {
		l.mu.Unlock()
		return
	}
	if l.none == nil {
		l.none = make(chan struct{})
	}
	none := l.none
	l.mu.Unlock()
	<-none
}
