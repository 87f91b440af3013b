package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"
)

// lifecycle is a stack of what was started. Stopping undoes it step by step,
// the last one first. It is used by one goroutine.
type lifecycle struct {
	steps []step
	log   zerolog.Logger
}

type step struct {
	name string
	undo func(context.Context) error
}

// started puts a step on the stack.
func (l *lifecycle) started(name string, undo func(context.Context) error) {
	l.steps = append(l.steps, step{name, undo})
}

// stop undoes all steps, also where some fail, and those once. Steps are told
// by ctx when to give up what is left of them.
func (l *lifecycle) stop(ctx context.Context) error {
	var failures []error
	for len(l.steps) > 0 {
		last := l.steps[len(l.steps)-1]
		l.steps = l.steps[:len(l.steps)-1]
		l.log.Debug().Str("step", last.name).Msg("stopping")
		if err := last.undo(ctx); err != nil {
			failures = append(failures, fmt.Errorf("stop %s: %w", last.name, err))
		}
	}
	return errors.Join(failures...)
}
