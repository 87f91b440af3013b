//go:build !linux

package main

import (
	"errors"
	"time"
)

// poller exists on Linux only, as does /proc, without which nothing can be
// measured either.
type poller struct{}

const readNothing = -2

func newPoller() (*poller, error) { return nil, errors.New("this needs Linux") }

func (*poller) close()                           {}
func (*poller) connect(string, int) (int, error) { return -1, errors.New("this needs Linux") }
func (*poller) hangUp(int)                       {}
func (*poller) wait(time.Duration) []int         { return nil }
func (*poller) write(int, []byte) bool           { return false }
func (*poller) read(int, []byte) int             { return -1 }

func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
