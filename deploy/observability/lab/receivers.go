package lab

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"licet/loadtest/rig"
)

// receivers are webhook endpoints of each kind: one accepts everything, one fails every
// second time, one answers 410, and one is not there.
type receivers struct {
	server *httptest.Server
	urls   []string
}

func newReceivers() (*receivers, error) {
	unused, err := rig.FreePorts(1)
	if err != nil {
		return nil, err
	}
	var calls atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/well", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/now-and-then", func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	server := httptest.NewServer(mux)
	return &receivers{server, []string{server.URL + "/well", server.URL + "/now-and-then", server.URL + "/gone",
		fmt.Sprintf("http://127.0.0.1:%d/unused", unused[0])}}, nil
}
