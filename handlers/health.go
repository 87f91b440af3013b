package handlers

import (
	"context"
	"time"

	"licet/licensing"
)

// probeRoutes are the functions of the routes of probes.
type probeRoutes struct{ *Server }

// readyTimeout bounds how long a probe waits for the store.
const readyTimeout = time.Second

type health struct {
	Status string `json:"status"`
}

// live reports that the process runs. It does not ask the store: restarting a
// node does not repair its store.
func (s probeRoutes) live(context.Context, *call, noInput) (health, error) {
	return health{"live"}, nil
}

// ready reports whether this node takes requests: the store answers, and the
// node is not shutting down.
func (s probeRoutes) ready(ctx context.Context, _ *call, _ noInput) (health, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err := s.cfg.Node.Ready(ctx)
	if ctx.Err() != nil {
		return health{}, licensing.ErrUnavailable
	}
	if err != nil {
		return health{}, err
	}
	return health{"ready"}, nil
}
