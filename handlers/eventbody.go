package handlers

import (
	"bytes"

	"licet/node"
)

// RenderEvent writes an event as the body of a webhook: what a lookup of it answers.
func (s *Server) RenderEvent(v *node.EventView) ([]byte, error) {
	body, err := encode(s.eventAnswer(v))
	return bytes.TrimSuffix(body, []byte("\n")), err
}
