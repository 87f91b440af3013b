package main

import (
	"errors"
	"testing"
)

func TestAttempt(t *testing.T) {
	gone := errors.New("the node is gone")
	begun, ended := false, false
	err := attempt(func() {
		named("round 1", func() {
			begun = must(true, nil)
			stopIf(nil)
			must(0, gone)
			ended = true
		})
	})
	if !errors.Is(err, gone) || err.Error() != "round 1: the node is gone" || !begun || ended {
		t.Errorf("got %v, begun %v, ended %v", err, begun, ended)
	}
	if err := attempt(func() {}); err != nil {
		t.Errorf("without a failure: %v", err)
	}
	defer func() {
		if why := recover(); why != "a bug" {
			t.Errorf("another panic became %v", why)
		}
	}()
	_ = attempt(func() { panic("a bug") })
}
