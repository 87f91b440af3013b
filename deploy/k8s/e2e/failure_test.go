package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestUntil: a check that ends its step is repeated. An ended daemon, and the end of the time, end the step.
func TestUntil(t *testing.T) {
	c, checks := &cluster{}, 0
	if err := attempt(func() {
		c.until(t.Context(), time.Minute, "three checks", func(context.Context) {
			if checks++; checks < 3 {
				stop("check %d", checks)
			}
		})
	}); err != nil || checks != 3 {
		t.Errorf("%d checks: %v", checks, err)
	}
	never := errors.New("not yet")
	err := attempt(func() {
		c.until(t.Context(), time.Millisecond, "never", func(context.Context) { must(0, never) })
	})
	if !errors.Is(err, never) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	over := make(chan struct{})
	close(over)
	gone := errors.New("it was killed")
	c.daemons = []*daemon{{name: "kubelet", over: over, err: gone}}
	if err := attempt(func() {
		c.until(t.Context(), time.Minute, "a dead kubelet", func(context.Context) { stop("not ready") })
	}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	defer func() {
		if why := recover(); why != "a bug" {
			t.Errorf("another panic became %v", why)
		}
	}()
	_ = attempt(func() { panic("a bug") })
}
