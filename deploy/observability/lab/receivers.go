package lab

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"licet/loadtest/rig"
)

// receivers are webhook endpoints of each kind: one accepts everything, one fails every
// second time, one answers 410, and one is not there.
type receivers struct {
	server *http.Server
	urls   []string
}

func newReceivers() (*receivers, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
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
	base := "http://" + listener.Addr().String()
	r := &receivers{server: &http.Server{Handler: mux},
		urls: []string{base + "/well", base + "/now-and-then", base + "/gone", fmt.Sprintf("http://127.0.0.1:%d/unused", unused[0])}}
	go func() { _ = r.server.Serve(listener) }() // it ends by close
	return r, nil
}

func (r *receivers) close() { _ = r.server.Close() }
