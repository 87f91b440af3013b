package handlers

import (
	"context"
	"time"

	"licet/licensing"
)

// readyTimeout bounds how long a probe waits for the store.
const readyTimeout = time.Second

type health struct {
	Status string `json:"status"`
}

// live tells that the process runs. It asks nobody: restarting a node does not
// mend its store.
func (s *Server) live(*request) (any, error) { return health{"live"}, nil }

// ready tells whether requests may be sent here: the store answers, and the
// node is not shutting down.
func (s *Server) ready(r *request) (any, error) {
	ctx, cancel := context.WithTimeout(r.ctx, readyTimeout)
	defer cancel()
	err := s.cfg.Node.Ready(ctx)
	if ctx.Err() != nil {
		return nil, licensing.ErrUnavailable
	}
	if err != nil {
		return nil, err
	}
	return health{"ready"}, nil
}
