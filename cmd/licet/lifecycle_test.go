package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestLifecycleUndoesInReverseAndOnce(t *testing.T) {
	var order []string
	l := lifecycle{log: zerolog.Nop()}
	for _, name := range []string{"store", "node", "server"} {
		l.started(name, func(context.Context) error {
			order = append(order, name)
			if name == "node" {
				return errors.New("stuck")
			}
			return nil
		})
	}
	err := l.stop(t.Context())
	if err == nil || err.Error() != "stop node: stuck" {
		t.Errorf("got error %v", err)
	}
	if got := strings.Join(order, " "); got != "server node store" {
		t.Errorf("the order was %s", got)
	}
	if err := l.stop(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("a second stop did something: %v, %v", order, err)
	}
}
