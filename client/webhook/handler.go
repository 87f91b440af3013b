package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// maxBody is far more than an event comes to: up to 64 KiB of an order or a
// license as it was sent, and what the service adds.
const maxBody = 256 << 10

// Handler makes an HTTP handler that gives each event to a function. It answers
// 204 once that has returned nil, and 500 where it has not, so that the service
// sends the event again later, over some three days. ctx ends when the service
// hangs up, which it does after 15 seconds.
//
// The function is called as often as an event comes: see the package's text for
// how to tell one that was there before. It is called by many goroutines at once.
//
// What is not signed by the service gets 401 and what is no event 400; the
// function does not see it. Of a body at most 256 KiB are read.
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
			// What went wrong is for whoever runs this, not for the service.
			http.Error(w, "the event was not processed: send it again later", http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

func refuseBody(w http.ResponseWriter, err error) {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		http.Error(w, "the body is too long for an event", http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "the body did not arrive", http.StatusBadRequest)
}
