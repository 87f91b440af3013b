package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// maxBody bounds a body in bytes. It is much larger than any event: up to 64 KiB of an order or a license as sent, and
// what the service adds.
const maxBody = 256 << 10

// Handler returns an HTTP handler that passes each event to process. The handler responds with 204 if process returns
// nil, and else with 500. After a 500, the service sends the event again, for about three days. ctx ends when the
// service closes the connection, which it does after 15 seconds.
//
// process must be safe for concurrent use, and must recognize duplicates; see the package comment.
//
// The handler responds with 401 to a request without a valid signature, and with 400 to a signed request that is no
// event. It reads at most 256 KiB of a body.
func (r *Receiver) Handler(process func(ctx context.Context, event *Event) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "webhooks are sent by POST", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
		if err != nil {
			refuseBody(w, err)
			return
		}
		event, err := r.Receive(req.Header, body)
		switch {
		case errors.Is(err, ErrEvent):
			http.Error(w, ErrEvent.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case process(req.Context(), event) != nil:
			// The response does not quote the error, which may contain internal details.
			http.Error(w, "the event was not processed: send it again later", http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// refuseBody responds to a request whose body could not be read.
func refuseBody(w http.ResponseWriter, err error) {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		http.Error(w, "the body is too long for an event", http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "the body did not arrive", http.StatusBadRequest)
}
